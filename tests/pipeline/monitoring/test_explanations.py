from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model.snapshot import pack
from pipeline.monitoring.explanations import KEPT, LatestExplanations, explain_last
from pipeline.task.batch import Batch
from pipeline.task.task import Task
from tests.support.builders import ALL, Inputs, feed_all, inputs, interaction, label, new_task
from tests.support.examples import examples
from tests.support.streams import streams


def batches(task: Task, given_inputs: Inputs, limit: int) -> Iterator[Batch]:
    feed_all(task, given_inputs)
    while not (batch := task.advance(limit)).empty:
        yield batch


@examples(60)
@given(streams(), st.integers(1, 20))
def test_what_is_explained_is_what_was_written(given_inputs: Inputs, limit: int) -> None:
    task = new_task()
    for batch in batches(task, given_inputs, limit):
        written, found = batch.predictions, explain_last(task, batch)
        unchanged = len(written) > 0 and written.versions[-1] == task.model.outcomes_learned
        assert (found is not None) == unchanged
        if found is not None:
            assert found.score == written.scores[-1]
            assert found.event_id == str(written.ids_of(0)[-1])
            assert found.sequence == written.first + len(written) - 1
            assert abs(math.fsum(term.value for term in found.terms) - found.score) < 1e-12


def test_a_prediction_is_explained_only_before_the_model_learns() -> None:
    task = new_task()
    feed_all(task, inputs([interaction("a", 1), interaction("b", 2)], [label("a", 3)]))
    batch = task.advance(ALL)
    assert (len(batch.predictions), len(batch.outcomes)) == (2, 1)
    assert explain_last(task, batch) is None


def test_explaining_changes_nothing() -> None:
    explained, plain = new_task(), new_task()
    events = [interaction(f"e{n}", 10 * n, n % 3, n % 5) for n in range(60)]
    labels = [label(f"e{n}", 10 * n + 15, float(n % 2), n % 3, n % 5) for n in range(60)]
    scores: list[list[float]] = []
    for task in (explained, plain):
        scores.append([])
        for batch in batches(task, inputs(events, labels), 7):
            scores[-1] += batch.predictions.scores.tolist()
            if task is explained:
                explain_last(task, batch)
    assert scores[0] == scores[1]
    assert pack(explained.model) == pack(plain.model)


def shown(latest: LatestExplanations) -> list[str]:
    return [each.event_id for each in latest.predictions]


def test_only_committed_predictions_show_and_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("pipeline.monitoring.explanations.time.monotonic", lambda: now)
    latest, task = LatestExplanations(), new_task()
    feed_all(task, inputs([interaction("a", 1)], []))
    batch = task.advance(ALL)
    latest.look([(task, batch)])
    assert shown(latest) == []
    latest.forget_pending()
    latest.committed(0, 1)
    assert shown(latest) == []
    for number in range(KEPT + 5):
        feed_all(task, inputs([interaction(f"e{number}", 2 + number)], []))
        batch = task.advance(ALL)
        now += 1.0
        for _ in range(3):  # one a second at most
            latest.look([(task, batch)])
        latest.committed(1, 10**9)
        latest.committed(0, batch.predictions.first)
        assert f"e{number}" not in shown(latest)
        latest.committed(0, batch.predictions.first + 1)
        assert shown(latest)[0] == f"e{number}"
    assert len(set(shown(latest))) == len(shown(latest)) == KEPT


def test_partitions_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("pipeline.monitoring.explanations.time.monotonic", lambda: now)
    latest, tasks = LatestExplanations(), [new_task(partition=number) for number in range(3)]
    for turn in range(6):
        parts = []
        for task in tasks:
            feed_all(task, inputs([interaction(f"e{turn}", 1 + turn)], []))
            parts.append((task, task.advance(ALL)))
        latest.look(parts)
        for task in tasks:
            latest.committed(task.partition, 10**9)
        now += 1.0
    assert [each.partition for each in latest.predictions] == [2, 1, 0, 2, 1, 0]
