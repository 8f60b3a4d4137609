"""The same events in a loop over River's `simulate_qa`, which knows no Kafka, task, model or join."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from river import stream

from forks import Forks, ForksSettings
from pipeline.features.statistics import RunningStatistics
from pipeline.features.tables import Tables
from pipeline.features.tags import TagLists
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.sources.kuairec import read_events

MAX_ENTITIES = 1_000_000


class Pair(NamedTuple):
    """An event's two records."""

    interaction: KuaiRecInteraction
    label: WatchLabel


def pairs_of(folder: Path) -> list[Pair]:
    """Return the usable rows, by time."""
    return [
        Pair(
            KuaiRecInteraction(
                row["event_id"], row["user_id"], row["video_id"], row["timestamp"], row["video_duration"]
            ),
            WatchLabel(
                row["event_id"],
                row["user_id"],
                row["video_id"],
                row["label_timestamp"],
                row["play_duration"],
                row["watch_ratio"],
            ),
        )
        for row in read_events(folder).frame.iter_rows(named=True)
    ]


def offline(
    pairs: list[Pair], settings: ForksSettings, tables: Tables, tags: TagLists | None = None
) -> tuple[list[float], list[int]]:
    """Scores and, for each, the number of labels known before."""
    learner, statistics, waiting = Forks(settings), RunningStatistics(MAX_ENTITIES, tags), {}
    scores, versions, learned = [], [], 0
    for number, row, ratio in simulated(pairs):
        user, video = row["user_id"], row["video_id"]
        if ratio is None:
            waiting[number] = x = np.empty(settings.dimension)
            tables.fill(x, user, video, row["timestamp"])
            x[tables.columns :] = statistics.features((user, video))
            scores.append(learner.predict_one(x))
            versions.append(learned)
        else:
            watched = ratio > 0.75
            taught = min(ratio, 2.0) - 0.75 if settings.loss == "squared" else 2.0 * watched - 1.0
            learner.learn_one(waiting.pop(number), taught)
            statistics.update((user, video), watched, ratio)
            learned += 1
    assert learned == len(pairs)
    return scores, versions


def simulated(pairs: list[Pair]) -> Iterator[tuple[int, dict[Hashable, Any], float | None]]:
    """Questions and answers in the order of `river.stream.simulate_qa`."""
    dataset: Iterator[tuple[dict[Hashable, Any], float]] = (
        (
            {
                "user_id": interaction.user_id,
                "video_id": interaction.video_id,
                "timestamp": interaction.timestamp,
                "delay": label.timestamp - interaction.timestamp,
            },
            label.watch_ratio,
        )
        for interaction, label in pairs
    )
    yield from stream.simulate_qa(dataset, moment="timestamp", delay="delay", copy=False)
