"""What a partition makes of a policy: who is asked for, what is learned, what is written."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.config.settings import Labels
from pipeline.model.label_policy import LabelPolicy
from pipeline.records.encoding import encode
from pipeline.records.fields import FEATURES_LENGTH
from pipeline.records.outcome_encoder import LabelFields, encode_label_fields, prefix_end
from pipeline.records.outputs import LabelRequest, Outcome, Prediction
from pipeline.records.texts import Texts
from pipeline.task.task import Task
from pipeline.worker.encoder import RecordEncoder
from tests.support import slates
from tests.support.builders import (
    ALL,
    BatchRecords,
    Inputs,
    feed_all,
    inputs,
    interaction,
    join_settings,
    label,
    new_task,
    records_of,
)


class Chosen(LabelPolicy):
    """Asks for the events that it is told."""

    def __init__(self, events: Sequence[object], *, learn_unasked: bool = False) -> None:
        super().__init__(Labels(policy="random", learn_unasked=learn_unasked))
        self.events = events
        self.counts: list[tuple[int, int]] = []

    def coins(self, event_ids: Texts) -> NDArray[np.float64]:
        named = [msgspec.json.decode(each) for each in event_ids]
        about = [tuple(each) if isinstance(each, list) else each for each in named]
        return np.array([each in self.events for each in about], dtype=np.float64)

    def ask(
        self,
        coins: NDArray[np.float64],
        scores: NDArray[np.float64],  # noqa: ARG002 - it is told
        features: NDArray[np.float64],  # noqa: ARG002
        *,
        predicted: int,
        asked: int,
    ) -> NDArray[np.bool_]:
        chosen = coins > 0.0
        for number, each in enumerate(chosen.tolist()):
            self.counts.append((predicted + number, asked))
            asked += each
        return chosen


def play(
    given: Inputs, policy: LabelPolicy | None, on_missing: str = "negative"
) -> tuple[Task, BatchRecords, list[bytes]]:
    task = new_task(join_settings(on_missing=on_missing), policy=policy)
    feed_all(task, given)
    batch = task.advance(ALL)
    return task, records_of(batch), [*RecordEncoder().encode(batch).requests.values]


def four() -> Inputs:
    """Two events that get their label, then two that do not, and one long after."""
    interactions = [interaction(n, 10 * n, user_id=n, video_id=n) for n in range(4)]
    watch_labels = [label(n, 50 + n, user_id=n, video_id=n) for n in range(2)]
    return inputs([*interactions, interaction(9, 300)], watch_labels)


def test_a_policy_gets_what_was_predicted_and_asked_before() -> None:
    policy = Chosen([1, 2])
    play(four(), policy)
    assert policy.counts == [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2)]


def test_predictions_outcomes_and_requests_say_who_is_asked_for() -> None:
    _, batch, requests = play(four(), Chosen([1, 3]))
    assert [prediction.asked for prediction in batch.predictions] == [False, True, False, True, False]
    assert [outcome.asked for outcome in batch.outcomes] == [False, True, False, True]
    found = [msgspec.json.decode(value, type=LabelRequest) for value in requests]
    asked = [prediction for prediction in batch.predictions if prediction.asked]
    assert found == [LabelRequest.of(prediction, number) for number, prediction in enumerate(asked)]
    assert [(request.event_id, request.prediction_sequence) for request in found] == [(1, 1), (3, 3)]


@pytest.mark.parametrize("on_missing", ["negative", "drop"])
def test_what_was_not_asked_for_teaches_nothing_whether_it_comes_or_expires(on_missing: str) -> None:
    task, batch, _ = play(four(), Chosen([1]), on_missing)
    labels = {outcome.event_id: outcome.label for outcome in batch.outcomes}
    assert labels == {0: None, 1: True, 2: None, 3: None}
    assert [outcome.correct for outcome in batch.outcomes if outcome.label is None] == [None] * 3
    assert [outcome.loss for outcome in batch.outcomes if outcome.label is None] == [None] * 3
    assert batch.outcomes[0].watch_ratio == 1.0, "what came is told all the same"
    assert len(task.model.statistics.tables[0]) == 1
    assert task.model.learner.updates == 1
    assert (task.counters["asked"], task.counters["unasked"]) == (1, 1)


def test_unless_it_comes_and_may_be_learned() -> None:
    task, batch, _ = play(four(), Chosen([3], learn_unasked=True))
    labels = {outcome.event_id: outcome.label for outcome in batch.outcomes}
    assert labels == {0: True, 1: True, 2: None, 3: False}
    assert task.model.learner.updates == 3
    assert task.counters["unasked"] == 2


def test_who_asks_for_all_learns_all_with_the_bits_of_no_policy() -> None:
    task, batch, requests = play(four(), Chosen(range(10)))
    plain, expected, none = play(four(), None)
    assert len(requests) == 5
    assert none == []
    for found, wanted in ((batch.predictions, expected.predictions), (batch.outcomes, expected.outcomes)):
        assert [msgspec.structs.replace(each, asked=None) for each in found] == list(wanted)
    assert task.model.learner.state()["updates"] == plain.model.learner.state()["updates"]


def test_without_a_policy_records_have_no_asked_field() -> None:
    task = new_task()
    feed_all(task, four())
    batch = RecordEncoder().encode(task.advance(ALL))
    assert not any(b"asked" in value for value in (*batch.predictions.values, *batch.outcomes.values))
    assert not batch.requests.values
    assert task.counters["asked"] == task.counters["unasked"] == 0


def test_records_of_before_there_were_policies_are_read() -> None:
    prediction = Prediction("e", 7, 3, 5, 0.5, None, True, [0.25] * FEATURES_LENGTH, 0, 9)
    assert b"asked" not in encode(prediction)
    assert msgspec.json.decode(encode(prediction), type=Prediction) == prediction
    label_fields = LabelFields(9, 1.0, True, 6, True, 0.2, "labelled", sequence=0)
    [written] = encode_label_fields([label_fields])
    text = encode(prediction)
    outcome = text[: prefix_end(text)] + written
    assert b"asked" not in outcome
    assert encode(msgspec.json.decode(outcome, type=Outcome)) == outcome


def test_an_event_s_name_cannot_be_taken_for_a_field_of_its_outcome() -> None:
    named = Prediction('"sequence":', 7, 3, 5, 0.5, None, True, [0.25] * FEATURES_LENGTH, 0, 9, asked=True)
    text = encode(named)
    assert text[: prefix_end(text)].endswith(b'"model_version":0,')


def test_each_item_of_a_slate_is_asked_for_by_itself() -> None:
    policy = Chosen([(0, "b"), (1, "a")])
    task, written = slates.run(
        slates.inputs(
            [slates.slate(n, 10 * n, ["a", "b", "c"]) for n in range(2)],
            [slates.label(0, 15, "a"), slates.label(0, 16, "b"), slates.label(1, 17, "a")],
        ),
        policy=policy,
    )
    assert policy.counts == [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2)]
    items = [item for value in written.predictions for item in msgspec.json.decode(value)["items"]]
    assert [each["asked"] for each in items] == [False, True, False, True, False, False]
    requests = [msgspec.json.decode(value) for value in written.requests]
    names = "event_id", "video_id", "prediction_sequence", "position", "sequence"
    assert [tuple(each[name] for name in names) for each in requests] == [
        (0, "b", 0, 1, 0),
        (1, "a", 1, 0, 1),
    ]
    assert [each["score"] for each in requests] == [items[1]["score"], items[3]["score"]]
    outcomes = [slates.TYPES.outcomes.decode(value) for value in written.outcomes]
    assert [(each.asked, each.label) for each in outcomes] == [(False, None), (True, True), (True, True)]
    assert (task.counters["asked"], task.counters["unasked"], task.counters["items"]) == (2, 1, 6)


def test_single_items_requests_have_no_position() -> None:
    _, _, requests = play(four(), Chosen([1]))
    assert b"position" not in requests[0]
