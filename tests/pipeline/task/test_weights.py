"""Labels with weights: in outcomes, over batches and deaths, between partitions and in an audit."""

from __future__ import annotations

from functools import cache

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Join as JoinSettings
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.rival import RivalSettings
from pipeline.model.shadow import ChallengerSettings
from pipeline.model.snapshot import pack
from pipeline.records.encoding import encode
from pipeline.records.outcome_decoder import OutcomeDecoder
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import Outcome, Share
from pipeline.task.sharing import SharingSettings
from tests.pipeline.recovery.test_restoration import WorkerStep, run_with_deaths, worker_steps
from tests.support.builders import (
    ALL,
    WEIGHTED,
    Inputs,
    Written,
    feed_all,
    inputs,
    interaction,
    join_settings,
    label,
    new_model,
    new_task,
    run,
    small_learner,
    with_weights,
)
from tests.support.consumer import REST, Step, steps
from tests.support.examples import examples
from tests.support.recording import Recording, record
from tests.support.streams import policies, streams, tight

TYPES = OutputTypes.of(WEIGHTED)
CHALLENGERS: dict[str, ChallengerSettings] = {
    "mistakes": RivalSettings.of("rbp", {"budget": 4}),
    "newton": RivalSettings.of("fouriernewton", {}),
    "sketched": RivalSettings.of(
        "skegd", {"budget": 6, "rank": 2, "landmarks": 3, "cycle": 3, "sketch_size": 4}
    ),
    "wider": small_learner(budget=6, loss="squared"),
}


def outcomes_of(written: Written) -> list[Outcome]:
    return [TYPES.outcomes.decode(value) for value in written.outcomes]


@cache
def long_stream() -> Inputs:
    """Two hundred events, every tenth without a label."""
    interactions = [interaction(n, 10 * n, user_id=n % 5, video_id=n % 7) for n in range(200)]
    labels = [label(n, 10 * n + 35, n % 3, user_id=n % 5, video_id=n % 7) for n in range(200) if n % 10]
    return with_weights(inputs(interactions, labels))


def test_outcomes_have_the_weight_of_their_label_and_1_where_none_came() -> None:
    task, written = run(long_stream(), model=new_model(weighted=True))
    outcomes = outcomes_of(written)
    labels = [msgspec.json.decode(each.source.value or b"") for each in long_stream().labels]
    weights = {each["event_id"]: each["weight"] for each in labels}
    assert len(outcomes) > 190
    for each in outcomes:
        refused = weights.get(each.event_id) in {None, -1}
        assert each.status == ("expired" if refused else "labelled")
        assert each.weight == (1.0 if refused else weights[each.event_id])
    assert task.counters["invalid"] == sum(weight in {None, -1} for weight in weights.values()) > 0
    assert task.model.learner.state()["stage"] == 2
    text = msgspec.json.decode(written.outcomes[0])
    names = list(text)
    assert names[names.index("watch_ratio") + 1] == "weight"
    assert b'"weight"' not in b"".join(written.predictions)


def test_learners_follow_weights_and_running_statistics_do_not() -> None:
    weighted, _ = run(long_stream(), model=new_model(weighted=True, challengers=CHALLENGERS))
    ignored, _ = run(long_stream(), model=new_model(challengers=CHALLENGERS))
    assert weighted.counters == ignored.counters
    of_weighted, of_ignored = weighted.model, ignored.model
    for ids in ((1, 3), (4, 6), (99, 99)):
        found, expected = (each.statistics.features(ids, 3_000) for each in (of_weighted, of_ignored))
        assert found == expected
    learners = (
        [each.learner, *(c.learner for c in each.challengers.values())] for each in (of_weighted, of_ignored)
    )
    for one, other in zip(*learners, strict=True):
        states = [{n: np.asarray(v).tobytes() for n, v in each.state().items()} for each in (one, other)]
        assert states[0] != states[1]


def test_a_label_of_weight_0_is_an_outcome_that_teaches_the_learner_nothing() -> None:
    given_inputs = inputs([interaction(n, 10 * n) for n in range(30)], [label(n, 10 * n) for n in range(30)])
    task, written = run(with_weights(given_inputs, [0]), model=new_model(weighted=True))
    outcomes = outcomes_of(written)
    assert len(outcomes) == task.model.outcomes_learned == 30
    assert all(each.label is True and each.loss is not None for each in outcomes)
    assert task.model.learner.updates == 0
    assert outcomes[-1].features[0] != outcomes[0].features[0]  # means of labels count them


@examples(40)
@given(given_inputs=streams(), drawn=st.lists(worker_steps, max_size=15), join=tight, policy=policies)
def test_deaths_do_not_show(
    given_inputs: Inputs, drawn: list[WorkerStep], join: JoinSettings, policy: LabelPolicy | None
) -> None:
    weighted = with_weights(given_inputs)
    whole, expected = run(weighted, join, new_model(weighted=True, challengers=CHALLENGERS), policy)
    task, log = run_with_deaths(
        weighted, drawn, join, policy=policy, challengers=CHALLENGERS, stream=WEIGHTED
    )
    assert log.written == expected
    assert pack(task.model) == pack(whole.model)
    assert task.counters == whole.counters


@examples(12)
@given(drawn=st.lists(worker_steps, max_size=30))
def test_nor_do_they_in_a_long_stream_whose_feature_map_changes(drawn: list[WorkerStep]) -> None:
    whole, expected = run(long_stream(), model=new_model(weighted=True))
    task, log = run_with_deaths(long_stream(), drawn, stream=WEIGHTED)
    assert log.written == expected
    assert pack(task.model) == pack(whole.model)


def test_outcomes_are_learned_together_as_one_by_one() -> None:
    challengers = CHALLENGERS
    task, written = run(long_stream(), model=new_model(weighted=True, challengers=challengers))
    single, together, raw = (new_model(weighted=True, challengers=challengers) for _ in range(3))
    for outcome in outcomes_of(written):
        single.learn_one(outcome)
    together.learn_many(outcomes_of(written))
    raw.learn_columns(OutcomeDecoder(TYPES).decode(written.outcomes))
    assert pack(single) == pack(together) == pack(raw) == pack(task.model)


@examples(40)
@given(given_inputs=streams(), drawn=st.lists(st.tuples(steps, st.booleans()), max_size=9), policy=policies)
def test_every_run_is_clean(
    given_inputs: Inputs, drawn: list[tuple[Step, bool]], policy: LabelPolicy | None
) -> None:
    recording = weighted_recording(with_weights(given_inputs), drawn, policy)
    assert recording.findings() == []
    assert not recording.snapshot or recording.audit(from_snapshot=True).findings == []


def weighted_recording(
    given_inputs: Inputs, drawn: list[tuple[Step, bool]], policy: LabelPolicy | None = None
) -> Recording:
    return record(given_inputs, [*drawn, (REST, False)], join_settings(), policy=policy, stream=WEIGHTED)


@pytest.mark.parametrize("weight", [0.25, 999.0])
@pytest.mark.parametrize("number", [3, -1])
def test_an_audit_finds_another_weight(number: int, weight: float) -> None:
    """It is not that of the label, even where no prediction follows that shows it."""
    recording = weighted_recording(long_stream(), [(Step(9, 9, False, 15), False)] * 20)
    assert recording.findings() == []
    labelled = [n for n, each in enumerate(recording.outcomes) if b'"labelled"' in (each.value or b"")]
    recording.change_outcome(labelled[number], weight=weight)
    assert any(finding.topic in {"outcomes", "watch-labels"} for finding in recording.findings())


def test_an_audit_finds_a_weight_of_a_label_that_never_came() -> None:
    recording = weighted_recording(long_stream(), [])
    expired = next(
        number
        for number, source in enumerate(recording.outcomes)
        if TYPES.outcomes.decode(source.value or b"").status == "expired"
    )
    recording.change_outcome(expired, weight=3.0)
    first = recording.first()
    assert "weight" in f"{first.expected} {first.found}"


def test_partitions_tell_one_another_weights() -> None:
    """One tells all it has learned; the other's model still follows from its own outcomes."""
    sharing = SharingSettings(2, 4, types=TYPES)
    tells = new_task(model=new_model(weighted=True), sharing=sharing)
    feed_all(tells, long_stream())
    shares: list[Share] = [TYPES.shares.decode(encode(each)) for each in tells.advance(ALL).shares]
    taught = [example for share in shares for example in share.examples]
    assert {example.weight for example in taught} > {0.0, 1.0, 1000.0}

    def listened(*, weighed: bool) -> tuple[bytes, list[Outcome]]:
        listens = new_task(partition=1, model=new_model(weighted=True), sharing=sharing)
        feed_all(listens, long_stream())
        for offset, share in enumerate(shares):
            told = share.examples
            if not weighed:
                told = [msgspec.structs.replace(each, weight=1.0) for each in told]
            listens.inbox.offer(msgspec.structs.replace(share, examples=told), offset, 100)
        written = Written.of([listens.advance(ALL)], WEIGHTED)
        return pack(listens.model), outcomes_of(written)

    model, outcomes = listened(weighed=True)
    again = new_model(weighted=True)
    again.learn_many(outcomes)
    assert pack(again) == model
    assert listened(weighed=False)[0] != model


def test_an_outcome_s_example_has_its_weight() -> None:
    _, written = run(long_stream(), model=new_model(weighted=True))
    for outcome in outcomes_of(written):
        assert outcome.example is not None
        assert outcome.example.weight == outcome.weight
