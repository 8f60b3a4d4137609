"""The task against River's reference for delayed labels, on real rows.

The rows come from KuaiRec (Gao et al., CIKM 2022, CC BY-SA 4.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forks import ForksSettings
from pipeline.config.settings import Learner
from pipeline.features.tables import Tables
from pipeline.model.learner_settings import learner_settings
from pipeline.model.model import Model
from pipeline.records.decoding import INTERACTION_DECODER, LABEL_DECODER, InputDecoder
from pipeline.records.encoding import encode
from pipeline.records.inputs import RawMessage
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.task.record_queue import Position, RecordQueue
from pipeline.task.task import Task
from tests.support.builders import BatchRecords, join_settings, records_of
from tests.support.entries import entries, queued
from tests.support.offline import MAX_ENTITIES, Pair, offline, pairs_of

LATEST = 2**53


def feed(
    queue: RecordQueue, records: Sequence[KuaiRecInteraction | WatchLabel], decoder: InputDecoder[Any]
) -> None:
    """Give an inlet all of its records, as JSON."""
    sources = [
        RawMessage("input", 0, offset, str(record.user_id).encode(), encode(record))
        for offset, record in enumerate(records)
    ]
    queue.feed(queued(entries(sources, decoder, LATEST)))
    queue.at_end = True


def in_the_task(pairs: list[Pair], settings: ForksSettings, tables: Tables) -> BatchRecords:
    """All of it through JSON, merge and join."""
    model = Model(settings, tables, MAX_ENTITIES)
    task = Task(0, model, join_settings(window="3650d", max_jump="3650d"), Position(0), Position(0))
    labels = sorted((pair.label for pair in pairs), key=lambda label: label.timestamp)
    feed(task.interactions, [pair.interaction for pair in pairs], INTERACTION_DECODER)
    feed(task.labels, labels, LABEL_DECODER)
    return records_of(task.advance(10**9))


def assert_same_scores(pairs: list[Pair], learner: Learner, tables: Tables) -> BatchRecords:
    settings = learner_settings(learner, tables.columns)
    batch = in_the_task(pairs, settings, tables)
    scores, versions = offline(pairs, settings, tables, tables.tags.lists if tables.tags else None)
    assert [prediction.event_id for prediction in batch.predictions] == [
        interaction.event_id for interaction, _ in pairs
    ]
    assert [prediction.model_version for prediction in batch.predictions] == versions
    assert np.array_equal(
        np.array([prediction.score for prediction in batch.predictions]).view(np.int64),
        np.array(scores).view(np.int64),
    )
    assert len(batch.outcomes) == len(pairs)
    assert not batch.dead_letters
    return batch


def test_scores_on_real_rows_are_those_of_simulate_qa_bit_for_bit(kuairec: Path) -> None:
    batch = assert_same_scores(pairs_of(kuairec), Learner(), Tables())
    assert len(batch.outcomes) > 60_000
    assert sum(not outcome.correct for outcome in batch.outcomes) <= 0.275 * len(batch.outcomes)


def test_so_they_are_where_the_watch_ratio_is_learned(kuairec: Path) -> None:
    tables = Tables(tags=kuairec / "item_categories.csv")
    learner = Learner.model_validate({"loss": "squared"})
    batch = assert_same_scores(pairs_of(kuairec)[:5_000], learner, tables)
    losses = [
        (outcome.score - (min(outcome.watch_ratio or 0.0, 2.0) - 0.75)) ** 2 for outcome in batch.outcomes
    ]
    assert [outcome.loss for outcome in batch.outcomes] == pytest.approx(losses)
    assert sum(not outcome.correct for outcome in batch.outcomes) <= 0.4 * len(batch.outcomes)


def test_so_they_are_with_all_columns_and_the_papers_preset(kuairec: Path) -> None:
    names = ("user_features.csv", "item_categories.csv", "item_daily_features.csv")
    tables = Tables(*(kuairec / name for name in names))
    learner = Learner.model_validate({"preset": "paper", "width": 8.0})
    batch = assert_same_scores(pairs_of(kuairec)[:3_000], learner, tables)
    assert len({prediction.score for prediction in batch.predictions}) > 1_000
