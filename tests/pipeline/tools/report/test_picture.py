from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import ConfigError
from pipeline.tools.report.figures import Report
from pipeline.tools.report.picture import check_format, draw
from tests.pipeline.tools.report.test_report import outcomes, report_of


def some_report() -> Report:
    return report_of(outcomes(*({"label": number % 3 == 0} for number in range(40))), window=10)


@pytest.mark.parametrize(("name", "begin"), [("run.png", b"\x89PNG"), ("run.SVG", b"<?xml")])
def test_the_ending_of_the_file_says_the_format(tmp_path: Path, name: str, begin: bytes) -> None:
    draw(some_report(), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begin)


def test_the_same_run_draws_the_same_bytes_and_another_note_others(tmp_path: Path) -> None:
    notes = {"first": "by A", "again": "by A", "other": "by B"}
    for name, note in notes.items():
        draw(some_report(), tmp_path / f"{name}.svg", note)
    first, again, other = ((tmp_path / f"{name}.svg").read_bytes() for name in notes)
    assert first == again
    assert first != other


def test_a_window_of_one_event_can_be_drawn(tmp_path: Path) -> None:
    draw(report_of(outcomes({})), tmp_path / "one.png")
    assert (tmp_path / "one.png").stat().st_size > 0


@pytest.mark.parametrize("name", ["run.pdf", "run", "missing/run.svg"])
def test_an_unwritable_picture_is_reported_before_anything_is_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="--out"):
        check_format(tmp_path / name)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "folder.svg"
    folder.mkdir()
    with pytest.raises(ConfigError, match=r"folder\.svg: cannot be written"):
        draw(some_report(), folder)
