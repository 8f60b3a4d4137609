"""Labels that come for an event whose outcome is written: what they teach, over deaths, and in an audit."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks import Forks, ForksSettings
from pipeline.features.feature_set import KUAIREC_FEATURES
from pipeline.features.statistics import RunningStatistics
from pipeline.model.snapshot import pack, unpack
from pipeline.records.outputs import Outcome
from tests.pipeline.recovery.test_restoration import WorkerStep, run_with_deaths, worker_steps
from tests.support.builders import (
    Inputs,
    Written,
    inputs,
    interaction,
    join_settings,
    label,
    model_under,
    new_model,
    run,
)
from tests.support.consumer import REST, Step, steps
from tests.support.examples import examples
from tests.support.output_log import OutputLog
from tests.support.recording import record
from tests.support.streams import streams

EFFECTS = [KUAIREC_FEATURES.effect_columns[place] for place in (0, 2, 4)]
"""Places of the effects themselves, and of what they come to."""
Mode = Literal["add", "replace"]
modes = st.sampled_from(["add", "replace"])


def outcomes_of(written: Written) -> list[Outcome]:
    return [msgspec.json.decode(value, type=Outcome) for value in written.outcomes]


def corrected_stream() -> Inputs:
    """Two hundred events, of which every third has its label corrected and every tenth has a late one."""
    interactions = [interaction(n, 10 * n, user_id=n % 5, video_id=n % 7) for n in range(200)]
    first = [(10 * n + 35, n, float(n % 3)) for n in range(200) if n % 10]
    later = [(10 * n + 95, n, 2.5 - n % 3) for n in range(0, 200, 3) if n % 10]
    late = [(10 * n + 130, n, 1.0) for n in range(0, 200, 10)]
    labels = [label(n, at, ratio, n % 5, n % 7) for at, n, ratio in sorted([*first, *later, *late])]
    return inputs(interactions, labels)


@pytest.mark.parametrize("mode", ["add", "replace"])
def test_a_later_label_is_an_outcome_of_its_own(mode: Mode) -> None:
    task, written = run(corrected_stream(), join_settings(corrections=mode))
    outcomes = outcomes_of(written)
    status = "replaced" if mode == "replace" else "corrected"
    later = [each for each in outcomes if each.status == status]
    assert len(later) == task.counters["corrected"] == 60 + 20
    first = {each.prediction_sequence: each for each in outcomes if not each.corrects}
    for each in later:
        before = first[each.prediction_sequence]
        assert each.event_id == before.event_id
        assert (each.score, each.features) == (before.score, before.features)
        assert each.former == (before.watch_ratio or 0.0)  # an expired one taught 0
        assert each.label == ((each.watch_ratio or 0.0) > 0.75)
    assert task.counters["late"] == 0


def test_the_same_label_again_and_an_older_one_are_duplicates() -> None:
    given_inputs = inputs(
        [interaction(1, 10)],
        [label(1, 20, 0.5), label(1, 25, 0.5), label(1, 30, 2.0), label(1, 29, 0.5), label(1, 31, 2.0)],
    )
    task, written = run(given_inputs, join_settings(corrections="add"))
    assert [each.watch_ratio for each in outcomes_of(written)] == [0.5, 2.0]
    assert task.counters["duplicate_labels"] == 3


def test_a_correction_of_another_user_is_a_dead_letter() -> None:
    given_inputs = inputs([interaction(1, 10)], [label(1, 20, 0.5), label(1, 25, 2.0, user_id=4)])
    task, written = run(given_inputs, join_settings(corrections="replace"))
    assert task.counters["mismatched"] == 1
    assert len(outcomes_of(written)) == 1


def test_without_the_setting_a_later_label_is_a_duplicate_or_late() -> None:
    task, written = run(corrected_stream())
    assert "corrected" not in task.counters
    assert (task.counters["duplicate_labels"], task.counters["late"]) == (60, 20)
    assert not any(each.corrects for each in outcomes_of(written))


@examples(50)
@given(
    given_inputs=streams(),
    drawn=st.lists(worker_steps, max_size=15),
    mode=modes,
    max_closed=st.sampled_from([1, 3, 1_000_000]),
)
def test_deaths_do_not_show(
    given_inputs: Inputs, drawn: list[WorkerStep], mode: Mode, max_closed: int
) -> None:
    join = join_settings(corrections=mode, max_closed=max_closed)
    whole, expected = run(given_inputs, join)
    task, log = run_with_deaths(given_inputs, drawn, join)
    assert log.written == expected
    assert pack(task.model) == pack(whole.model)
    assert task.counters == whole.counters


@examples(60)
@given(given_inputs=streams(), drawn=st.lists(st.tuples(steps, st.booleans()), max_size=9), mode=modes)
def test_every_run_is_clean(given_inputs: Inputs, drawn: list[tuple[Step, bool]], mode: Mode) -> None:
    recording = record(given_inputs, [*drawn, (REST, False)], join_settings(corrections=mode))
    assert recording.findings() == []
    assert recording.audit(from_snapshot=recording.snapshot is not None).findings == []


@pytest.mark.parametrize("mode", ["add", "replace"])
def test_an_audit_finds_what_was_changed_in_a_correction(mode: Mode) -> None:
    recording = record(corrected_stream(), [(REST, False)], join_settings(corrections=mode))
    assert recording.findings() == []
    outcomes = [msgspec.json.decode(each.value or b"", type=Outcome) for each in recording.outcomes]
    number = next(number for number, each in enumerate(outcomes) if each.corrects)
    recording.change_outcome(number, former=0.25)
    assert "former" in recording.first().found
    recording.change_outcome(number, former=outcomes[number].former, watch_ratio=0.3)
    assert recording.findings()


def test_an_audit_refuses_corrections_where_there_are_none() -> None:
    recording = record(corrected_stream(), [(REST, False)], join_settings(corrections="add"))
    recording.join = join_settings()
    assert "which does not" in recording.first().found


@pytest.mark.parametrize("mode", ["add", "replace"])
def test_the_log_alone_determines_the_model(mode: Mode) -> None:
    task, written = run(corrected_stream(), join_settings(corrections=mode))
    together, alone = new_model(), new_model()
    together.learn_many(outcomes_of(written))
    for outcome in outcomes_of(written):
        alone.learn_one(outcome)
    assert pack(together) == pack(alone) == pack(task.model)
    restored = model_under(OutputLog().settings)
    unpack(pack(task.model), restored)
    assert pack(restored) == pack(task.model)


def test_statistics_are_as_if_the_replaced_label_had_never_been() -> None:
    events = [(n % 5, n % 7, (0.0, 0.6, 1.7)[n % 3]) for n in range(60)]
    replaced, expected, kept = RunningStatistics(100), RunningStatistics(100), RunningStatistics(100)
    for number, (user, video, ratio) in enumerate(events):
        former = 2.0 - ratio if number % 4 == 1 else ratio
        for statistics in (replaced, kept):
            statistics.update((user, video), former > 0.75, former)
        expected.update((user, video), ratio > 0.75, ratio)
        if former != ratio:
            replaced.replace((user, video), former, ratio)
    for (_, found), (_, wanted) in zip(replaced.named_tables(), expected.named_tables(), strict=True):
        np.testing.assert_allclose(found.totals, wanted.totals, atol=1e-12)
    np.testing.assert_allclose(replaced.everything, expected.everything)
    of_pairs = [
        np.array([each.features((user, video)) for user in range(5) for video in range(7)])
        for each in (replaced, expected, kept)
    ]
    off, before = (np.abs(each - of_pairs[1]).max(axis=0) for each in (of_pairs[0], of_pairs[2]))
    assert (off[EFFECTS] < 0.2 * before[EFFECTS]).all()  # they are solved in another order


def test_sums_of_an_entity_that_was_evicted_stay_within_bounds() -> None:
    statistics = RunningStatistics(1)
    statistics.update((1, 1), True, 2.0)
    statistics.update((2, 2), False, 0.0)
    statistics.update((1, 1), False, 0.1)
    statistics.replace((1, 1), 2.0, 0.0)
    statistics.replace((9, 9), 2.0, 0.0)
    for _, table in statistics.named_tables():
        [row] = table.rows().tolist()
        assert table.totals[row, :3].tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_replaced_label_weighs_as_the_new_one_would(loss: Literal["squared", "logistic"]) -> None:
    rng = np.random.default_rng(5)
    settings = ForksSettings.practical(
        3, loss=loss, kernel_columns=(0, 1), budget=20, standardize=False, tracking=False
    )
    X = rng.normal(size=(400, 3))
    truth = X @ np.array([1.0, -0.5, 0.2])
    y = truth if loss == "squared" else np.where(truth > 0.0, 1.0, -1.0)
    wrong = y.copy()
    wrong[390:] = -wrong[390:]
    replaced, kept, expected = Forks(settings), Forks(settings), Forks(settings)
    for learner, labels in ((replaced, wrong), (kept, wrong), (expected, y)):
        learner.learn_many(X, labels)
    for x, former, label_ in zip(X[390:], wrong[390:], y[390:], strict=True):
        replaced.replace_one(x, former, label_)
    scores = [learner.predict_many(X) for learner in (replaced, kept, expected)]
    off, before = (np.abs(each - scores[2]).mean() for each in scores[:2])
    assert off < (1e-9 if loss == "squared" else 0.35 * before)


def test_a_replaced_label_has_to_be_one() -> None:
    learner = Forks(ForksSettings.practical(1))
    with pytest.raises(ValueError, match="former"):
        learner.replace_one([1.0], 0.5, 1.0)
