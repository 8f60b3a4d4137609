from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipeline.config.stream import KUAIREC
from pipeline.errors import DataError, StorageError
from pipeline.records.encoding import encode
from pipeline.serving import score_log
from pipeline.serving.candidates import CandidateType
from pipeline.serving.score_log import LoggedLine, ScoreLog, ScoreLogLine, read_score_log
from tests.support.serving import DELIVERIES


def line(version: int, scores: list[float]) -> ScoreLogLine:
    return ScoreLogLine(
        at=9,
        partition=1,
        epoch=0,
        model_version=version,
        as_of=4,
        time=5,
        ids=[[7, f"v{number}"] for number in range(len(scores))],
        features=[[]] * len(scores),
        scores=scores,
    )


def test_lines_come_back_with_the_same_bits(tmp_path: Path) -> None:
    lines = [line(1, [0.1 + 0.2, -1e-300]), line(2, [5e-324])]
    log = ScoreLog(tmp_path / "scores")
    for each in lines:
        log.write(each)
    log.close()
    assert [each.line for each in read_score_log(tmp_path / "scores")] == lines
    [first, second] = lines[0].candidates(KUAIREC)
    assert (first.ids, second.ids, first.timestamp) == ((7, "v0"), (7, "v1"), 5)


def test_features_of_messages_come_back(tmp_path: Path) -> None:
    kind = CandidateType.of(DELIVERIES)
    assert kind.names
    values = [1.5 if number else None for number, _ in enumerate(kind.names)]
    candidate = kind.make(5, ["c"] * len(DELIVERIES.entities), values)
    assert list(kind.features(candidate)) == values
    assert candidate.event_id == ""


def test_files_are_rotated_by_size_and_read_from_the_oldest_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score_log, "MAX_BYTES", 300)
    log = ScoreLog(tmp_path / "scores")
    for version in range(40):
        log.write(line(version, [0.5]))
    log.close()
    found = [
        each.line.model_version
        for each in read_score_log(tmp_path / "scores")
        if not isinstance(each.line, str)
    ]
    assert found == list(range(40))[-len(found) :]
    assert 0 < len(found) < 40
    assert len([*tmp_path.iterdir()]) == 1 + score_log.OLD_FILES
    assert all(each.stat().st_size <= 300 for each in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b'{"at":9', "half a line"),
        (b"nonsense\n", "not a line of scores"),
        (b"\xff\n", "not a line of scores"),
        (b"{}\n", "missing required field `at`"),
        (b"[" * 100_000 + b"\n", "not a line of scores"),
    ],
)
def test_a_line_that_is_none_is_named(tmp_path: Path, text: bytes, problem: str) -> None:
    (tmp_path / "scores").write_bytes(text)
    [found] = read_score_log(tmp_path / "scores")
    assert isinstance(found, LoggedLine)
    assert isinstance(found.line, str)
    assert problem in found.line


def test_a_line_of_another_stream_is_refused() -> None:
    with pytest.raises(ValueError, match="features each"):
        line(1, [0.5]).candidates(DELIVERIES)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be logged"):
        ScoreLog(tmp_path / "none" / "scores")
    with pytest.raises(DataError, match="no such file"):
        [*read_score_log(tmp_path / "scores")]


def test_what_cannot_be_written_is_counted(tmp_path: Path) -> None:
    log = ScoreLog(tmp_path / "scores")
    assert log.stream is not None
    log.stream.close()
    log.write(line(1, [0.5]))
    log.write(line(2, [0.5]))
    assert log.failures == 2


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"seed": -1}, "`$.explored.by.seed`"),
        ({"seed": 2**64}, "2^64"),
        ({"epsilon": 1.5}, "`$.explored.by.epsilon`"),
        ({"scale": 0.0}, "`$.explored.by.scale`"),
        ({"strategy": "guess"}, "`$.explored.by.strategy`"),
        ({"propensities": [1.0]}, "propensities and scores"),
    ],
)
def test_a_choice_that_no_follower_makes_is_no_line(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    by = {"strategy": "thompson", "epsilon": 0.1, "scale": 1.0, "seed": 0}
    explored: dict[str, Any] = {"by": by, "event_id": 1, "chosen": 0, "propensities": [0.5, 0.5]}
    good = msgspec.to_builtins(line(1, [0.5, 1.0])) | {"explored": explored}
    bad = explored | change if "propensities" in change else explored | {"by": by | change}
    path = tmp_path / "scores"
    path.write_bytes(encode(good) + b"\n" + encode(good | {"explored": bad}) + b"\n")
    first, second = [each.line for each in read_score_log(path)]
    assert isinstance(first, ScoreLogLine)
    assert isinstance(second, str)
    assert problem in second
