"""Answers that a follower has logged are derived again; a changed bit is found."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.stream import KUAIREC
from pipeline.errors import DataError
from pipeline.model.shadow import ChallengerSettings
from pipeline.records.encoding import encode
from pipeline.records.outputs import Outcome
from pipeline.recovery.libraries import BEFORE_NUMBERS
from pipeline.serving.candidates import CandidateType
from pipeline.serving.exploration import Exploration, Strategy, choose
from pipeline.serving.score_log import LoggedChoice, ScoreLog, ScoreLogLine
from pipeline.serving.served_model import ServedModel
from pipeline.tools.audit.audit_text import location
from pipeline.tools.audit.differences import AuditResult
from pipeline.tools.audit.score_index import DAMAGED, NO_PARTITION, ScoreIndex
from pipeline.tools.audit.scores import CHOICES_CHECKED, EARLIER, LATER, OTHER_ARITHMETIC, SCORES_CHECKED
from tests.support.builders import CHALLENGERS
from tests.support.consumer import REST, Step
from tests.support.examples import examples
from tests.support.recording import Recording, eventful, record

KIND = CandidateType.of(KUAIREC)
CANDIDATES = [KIND.make(9_000, (user, video), ()) for user in (1, 2, 99) for video in (1, 3)]
NONE: Mapping[str, ChallengerSettings] = MappingProxyType({})


def recorded(challengers: Mapping[str, ChallengerSettings] = NONE) -> Recording:
    drawn = [(Step(9, 9, False, 15), number == 8) for number in range(24)]
    return record(eventful(), [*drawn, (REST, False)], challengers=challengers)


@pytest.fixture(scope="module")
def run() -> Recording:
    return recorded(CHALLENGERS)


@cache
def recorded_answers(number: int) -> list[ScoreLogLine]:
    return _answers(recorded(CHALLENGERS if number else NONE))


def answers(run: Recording) -> list[ScoreLogLine]:
    """What a follower answers at every version, by champion and challengers in turn."""
    return [*recorded_answers(int("challengers.small.learner" in run.state.settings))]


def _answers(run: Recording) -> list[ScoreLogLine]:
    served, lines = ServedModel(0, run._new_model(), {}, 0), []
    names = (None, *served.challengers)
    outcomes = [msgspec.json.decode(each.value or b"", type=Outcome) for each in run.outcomes]
    for version in range(len(outcomes) + 1):
        challenger = names[version % len(names)]
        found = served.score_candidates(CANDIDATES, challenger)
        lines.append(
            ScoreLogLine(
                at=1,
                partition=0,
                epoch=0,
                arithmetic=found.arithmetic,
                model_version=version,
                as_of=0,
                challenger=challenger,
                time=9_000,
                ids=[[*each.ids] for each in CANDIDATES],
                features=[[] for _ in CANDIDATES],
                scores=found.scores,
            )
        )
        if version < len(outcomes):
            served._model.learn_one(outcomes[version])
    return lines


def logged(tmp_path: Path, lines: list[ScoreLogLine]) -> Path:
    log = ScoreLog(tmp_path / "scores.jsonl")
    for line in lines:
        log.write(line)
    log.close()
    return tmp_path / "scores.jsonl"


def audited(run: Recording, path: Path, *, from_snapshot: bool = False) -> AuditResult:
    index = ScoreIndex(path, 1)
    return run.audit(from_snapshot=from_snapshot, scores=index.lines(0))


@pytest.mark.parametrize("challengers", [NONE, CHALLENGERS], ids=["alone", "challengers"])
def test_every_answer_is_derived_again_whatever_the_order_of_lines(
    challengers: Mapping[str, ChallengerSettings], tmp_path: Path
) -> None:
    run = recorded(challengers)
    lines = answers(run)
    result = audited(run, logged(tmp_path, [*lines[50:], *lines[:50], *lines[:3]]))
    assert result.differences == 0
    assert result.checked[SCORES_CHECKED] == (len(lines) + 3) * len(CANDIDATES)
    assert result.checked[EARLIER] == result.checked[LATER] == 0


def test_versions_that_an_audit_does_not_come_to_are_counted(run: Recording, tmp_path: Path) -> None:
    lines = answers(run)
    beyond = [msgspec.structs.replace(each, model_version=each.model_version + 10**6) for each in lines[:2]]
    path = logged(tmp_path, [*lines, *beyond])
    result = audited(run, path, from_snapshot=True)
    assert run.state.snapshot is not None
    outcomes_learned = run.state.snapshot.outcomes_learned
    assert result.differences == 0
    assert result.checked[EARLIER] == outcomes_learned
    assert result.checked[LATER] == 2
    assert result.checked[SCORES_CHECKED] == (len(lines) - outcomes_learned) * len(CANDIDATES)


@examples(12)
@given(st.data())
def test_any_changed_bit_of_a_score_is_found_and_its_line_named(
    run: Recording, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    lines = answers(run)
    number = data.draw(st.integers(0, len(lines) - 1))
    place, bit = data.draw(st.integers(0, len(CANDIDATES) - 1)), data.draw(st.integers(0, 51))
    scores = list(lines[number].scores)
    bits = np.array(scores)
    bits.view(np.int64)[place] ^= 1 << bit
    scores = bits.tolist()
    lines[number] = msgspec.structs.replace(lines[number], scores=scores)
    path = logged(tmp_path_factory.mktemp("log"), lines)
    result = audited(run, path)
    assert result.differences == 1
    [finding] = result.findings
    assert location(finding) == f"{path}, line {number + 1}, partition 0"
    assert finding.expected.startswith("score ")
    assert finding.expected.endswith(f"of candidate {place}")
    assert finding.found == f"score {scores[place]!r}"


@pytest.mark.parametrize(
    ("changes", "expected", "found"),
    [
        ({"model_version": 41}, "score ", "score "),
        ({"epoch": 1}, "an epoch of settings up to 0", "epoch 1"),
        ({"challenger": "other"}, "a challenger of ['small', 'wider']", "'other'"),
        ({"ids": [[1, 1, 1]] * 6}, "candidates of this stream", "its candidates have not 2 ids each"),
        ({"tables": {"items": 3}}, "offsets of the tables []", "{'items': 3}"),
        ({"time": 10**9}, None, None),
    ],
)
def test_what_a_line_says_has_to_be_so(
    run: Recording, tmp_path: Path, changes: dict[str, Any], expected: str | None, found: str | None
) -> None:
    """The time matters only for streams whose features depend on it."""
    lines = answers(run)
    lines[40] = msgspec.structs.replace(lines[40], **changes)
    result = audited(run, logged(tmp_path, lines))
    if expected is None or found is None:
        assert result.differences == 0
        return
    [finding] = result.findings
    assert (finding.line, result.differences) == (41, 1)
    assert finding.expected.startswith(expected)
    assert finding.found.startswith(found)


def test_lines_that_cannot_be_read_are_counted_and_the_first_is_named(run: Recording, tmp_path: Path) -> None:
    lines = answers(run)[:6]
    elsewhere = msgspec.structs.replace(lines[0], partition=7)
    path = logged(tmp_path, lines)
    with path.open("ab") as file:
        file.write(b"{]\n" + encode(elsewhere) + b"\n" + encode(lines[1])[:-9])
    index = ScoreIndex(path, 1)
    result = run.audit(scores=index.lines(0))
    assert index.unreadable == {DAMAGED: 2, NO_PARTITION: 1}
    assert index.first is not None
    assert index.first.startswith(f"{path}, line 7: not a line of scores: ")
    assert result.differences == 0
    assert result.checked[SCORES_CHECKED] == 6 * len(CANDIDATES)


def test_a_log_that_changes_meanwhile_is_said(run: Recording, tmp_path: Path) -> None:
    path = logged(tmp_path, answers(run)[:2])
    index = ScoreIndex(path, 1)
    path.write_bytes(b"\n\n")
    assert [*index.lines(0)] == []
    assert index.unreadable == {DAMAGED: 2}
    assert index.first == f"{path}, line 1: it has changed since the audit began"
    path.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        next(index.lines(0))


def test_nothing_of_a_line_is_compared_beyond_its_first_difference(run: Recording, tmp_path: Path) -> None:
    lines = answers(run)
    lines[9] = msgspec.structs.replace(lines[9], scores=[0.5] * len(CANDIDATES))
    assert audited(run, logged(tmp_path, lines)).differences == 1


def test_lines_of_another_arithmetic_are_counted_and_not_derived(run: Recording, tmp_path: Path) -> None:
    lines = answers(run)
    for number in (3, 9):
        lines[number] = msgspec.structs.replace(
            lines[number], arithmetic=BEFORE_NUMBERS, scores=[0.5] * len(CANDIDATES)
        )
    result = audited(run, logged(tmp_path, lines))
    assert result.differences == 0
    assert result.checked[OTHER_ARITHMETIC] == 2
    assert result.checked[SCORES_CHECKED] == (len(lines) - 2) * len(CANDIDATES)


def explored(run: Recording, strategy: Strategy) -> list[ScoreLogLine]:
    """What a follower that explores answers at every version."""
    served, lines = ServedModel(0, run._new_model(), {}, 0), []
    by = Exploration(strategy, epsilon=0.1, scale=2.0, seed=5)
    outcomes = [msgspec.json.decode(each.value or b"", type=Outcome) for each in run.outcomes]
    for line in recorded_answers(0):
        found = served.score_candidates(CANDIDATES, variances=by.needs_variances)
        choice = choose(by, line.model_version, found.scores, found.variances)
        said = LoggedChoice(
            by=by, event_id=line.model_version, chosen=choice.chosen, propensities=choice.propensities
        )
        lines.append(msgspec.structs.replace(line, explored=said))
        if line.model_version < len(outcomes):
            served._model.learn_one(outcomes[line.model_version])
    return lines


@pytest.mark.parametrize("strategy", ["epsilon-greedy", "thompson"])
def test_every_choice_is_drawn_again(strategy: Strategy, tmp_path: Path) -> None:
    run = recorded()
    lines = explored(run, strategy)
    assert len({each.explored.chosen for each in lines if each.explored}) > 1
    result = audited(run, logged(tmp_path, lines))
    assert result.differences == 0
    assert result.checked[CHOICES_CHECKED] == len(lines)


@pytest.mark.parametrize("strategy", ["epsilon-greedy", "thompson"])
def test_a_choice_that_does_not_follow_is_found(strategy: Strategy, tmp_path: Path) -> None:
    run = recorded()
    lines = explored(run, strategy)
    said = lines[30].explored
    assert said
    moved = (said.chosen + 1) % len(CANDIDATES)
    propensities = [float(np.nextafter(said.propensities[0], 1.0)), *said.propensities[1:]]
    changes: list[dict[str, Any]] = [{"chosen": moved}, {"propensities": propensities}]
    for change in changes:
        changed = msgspec.structs.replace(said, **change)
        lines[30] = msgspec.structs.replace(lines[30], explored=changed)
        result = audited(run, logged(tmp_path, lines))
        [finding] = result.findings
        assert finding.line == 31
        assert finding.found.startswith("candidate " if "chosen" in change else "propensity ")
        (tmp_path / "scores.jsonl").unlink()
