from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.cli.replay import describe
from pipeline.errors import BrokerError, DataError
from pipeline.sources.replay import Pace, Summary
from pipeline.tools import terminal
from pipeline.tools.terminal import progress

HEADER = "user_id,video_id,play_duration,video_duration,timestamp,watch_ratio\n"


@pytest.mark.parametrize("speed", ["0", "-1", "fast", "nan", "inf"])
def test_a_speed_that_is_none_is_a_wrong_option(speed: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["replay", str(tmp_path), "--speed", speed])
    assert result.exit_code == 2
    assert "neither a number above 0" in result.stderr


def test_a_file_without_usable_rows_is_refused_before_anything_is_connected(tmp_path: Path) -> None:
    file = tmp_path / "matrix.csv"
    file.write_text(f"{HEADER}1,2,3,4,,5\n")
    result = CliRunner().invoke(app, ["replay", str(file), "--bootstrap", "127.0.0.1:1"])
    assert isinstance(result.exception, DataError)
    assert str(result.exception) == "none of the 1 rows can be used: 1 no timestamp"


def test_without_a_broker_the_address_is_named(tmp_path: Path) -> None:
    file = tmp_path / "matrix.csv"
    file.write_text(f"{HEADER}1,2,3,4,5,6\n")
    result = CliRunner().invoke(app, ["replay", str(file), "--bootstrap", "127.0.0.1:1"])
    assert isinstance(result.exception, BrokerError)
    assert "127.0.0.1:1" in str(result.exception)


@given(
    speed=st.floats(0.01, 1e6),
    begin=st.integers(0, 2 * 10**12),
    gap=st.integers(0, 10**9),
    now=st.floats(0, 1e6),
)
def test_event_time_is_divided_by_the_speed(speed: float, begin: int, gap: int, now: float) -> None:
    pace = Pace(speed, begin, now)
    assert pace.due(begin) == pytest.approx(now)
    assert pace.due(begin + gap) == pytest.approx(now + gap / 1000 / speed)


def test_the_summary_says_why_rows_were_skipped() -> None:
    summary = Summary(
        rows=1_010,
        skipped={"no_timestamp": 9, "out_of_range": 1},
        events=1_000,
        there_before=0,
        interactions=1_000,
        labels=1_000,
        seconds=2.0,
        events_per_s=500.0,
        complete=True,
    )
    assert "rows skipped   10 (9 no timestamp, 1 out of range)" in describe(summary)


def test_without_a_terminal_progress_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "LOG_INTERVAL", float("inf"))
    with progress("replay", 200) as update:
        update(50)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(terminal, "LOG_INTERVAL", 0.0)
        update(100)
    assert capsys.readouterr().err.startswith("replay: 100 of 200 (50%), ")
