"""What fewer labels cost on real KuaiRec rows, by policy and rate, every event counted from the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from bench.options import Options
from bench.summary import percent
from pipeline.config.settings import Labels, Learner
from pipeline.features.binary import TARGET
from pipeline.features.tables import Tables
from pipeline.model.label_policy import label_policy
from pipeline.model.learner_settings import learner_settings
from pipeline.model.model import Model
from pipeline.model.warm_up import warm_up
from pipeline.records.kuairec import KuaiRecInteraction
from pipeline.sources.kuairec import read_events

PERMUTATIONS = 3
RATES = (0.05, 0.1, 0.2, 0.5)
POLICIES: tuple[Literal["random", "margin", "adaptive"], ...] = ("random", "margin", "adaptive")
MAX_ENTITIES = 1_000_000


class Play(NamedTuple):
    """An event and what its label says."""

    interaction: KuaiRecInteraction
    ratio: float


class Figures(NamedTuple):
    """How it went.

    Parameters
    ----------
    mistakes, later : shares of all events, and of the second half
    asked : share of all events
    """

    mistakes: float
    later: float
    asked: float


def evaluate(plays: Sequence[Play], model: Model, settings: Labels, *, count_all: bool = False) -> Figures:
    """Let a model that knows nothing predict each play; a label that was asked for comes at once.

    With ``count_all`` the running statistics count the other labels, too, and only the learner goes without.
    """
    policy, asked = label_policy(settings), 0
    wrong = np.zeros(len(plays), dtype=np.bool_)
    for number, (interaction, ratio) in enumerate(plays):
        features, score, _, predicted, _ = model.predict(interaction)
        watched = TARGET.is_positive(ratio)
        wrong[number] = predicted != watched
        if policy is None or policy.asks(
            interaction.event_id, score, features, predicted=number, asked=asked
        ):
            asked += 1
            model.learn_example(interaction, features, ratio)
        elif count_all:
            model.statistics.update(interaction.ids, watched, ratio)
    n = len(plays)
    return Figures(float(wrong.mean()), float(wrong[n // 2 :].mean()), asked / n)


def run(options: Options) -> dict[str, Any]:
    """Return figures in time order, and over permutations, labels at once."""
    folder = options.folder("kuairec")
    frame = read_events(folder).frame
    tables = Tables(tags=folder / "item_categories.csv")
    learner = learner_settings(Learner(), tables.columns)
    warm_up(learner)
    seeds = range(options.runs or PERMUTATIONS)
    in_time = plays_of(frame)
    permuted = [plays_of(frame[np.random.default_rng(seed).permutation(frame.height)]) for seed in seeds]

    def evaluate_policy(labels: Labels, *, count_all: bool = False) -> dict[str, Any]:
        def of(plays: list[Play]) -> Figures:
            return evaluate(plays, Model(learner, tables, MAX_ENTITIES), labels, count_all=count_all)

        found = _figures(of(in_time), [of(plays) for plays in permuted])
        options.say(f"{labels.policy} {labels.rate}: {found}")
        return found

    rows: dict[str, dict[str, Any]] = {
        name: {str(rate): evaluate_policy(Labels(policy=name, rate=rate)) for rate in RATES}
        for name in POLICIES
    }
    counted = {name: evaluate_policy(Labels(policy=name), count_all=True) for name in POLICIES}
    return {
        "events": frame.height,
        "permutations": len(permuted),
        "all": evaluate_policy(Labels()),
        **rows,
        "all_counted": counted,
    }


def plays_of(frame: pl.DataFrame) -> list[Play]:
    """Return the rows of a frame in its order."""
    interaction = frame.select("event_id", "user_id", "video_id", "timestamp", "video_duration").rows()
    ratios = frame["watch_ratio"].to_list()
    return [Play(KuaiRecInteraction(*row), ratio) for row, ratio in zip(interaction, ratios, strict=True)]


def _figures(in_time: Figures, permuted: Sequence[Figures]) -> dict[str, Any]:
    return {
        "asked": round(100.0 * in_time.asked, 2),
        "mistakes": round(100.0 * in_time.mistakes, 3),
        "second_half": round(100.0 * in_time.later, 3),
        "permuted": percent([figures.mistakes for figures in permuted]),
        "permuted_second_half": percent([figures.later for figures in permuted]),
    }
