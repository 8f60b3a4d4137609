"""A folder of Parquet files over crashes between any two of its operations."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from pipeline.errors import ConfigError, ForksError, StateError, StorageError
from pipeline.tools.export.folder import INCOMPLETE, MANIFEST, ExportFolder

COLUMNS = {"offset": pl.Int64, "x": pl.Float64}
ROWS = 20


class Crash(BaseException):
    """The end of a process."""


def opened(path: Path) -> ExportFolder:
    path.mkdir(exist_ok=True)
    return ExportFolder(path, "outcomes", COLUMNS)


def export(path: Path, size: int = 6) -> None:
    """Export what is left of two partitions, in parts of `size`, each of two days."""
    folder = opened(path)
    for partition in range(2):
        while (begin := folder.partition(partition).next_offset) < ROWS:
            offsets = range(begin, min(begin + size, ROWS))
            days = {}
            for day in (0, 1):
                own = [offset for offset in offsets if offset % 2 == day]
                rows = {"offset": own, "x": [partition + offset / 3 for offset in own]}
                days[f"2026-03-0{day + 1}"] = pl.DataFrame(rows)
            folder.append(partition, {day: frame for day, frame in days.items() if len(frame)}, offsets.stop)


def found(path: Path) -> list[Any]:
    source = f"read_parquet('{path}/**/*.parquet')"
    query = f'select day::varchar, partition, "offset", x from {source} order by 2, 3'
    return duckdb.execute(query).fetchall()


EXPECTED = [
    (f"2026-03-0{offset % 2 + 1}", partition, offset, partition + offset / 3)
    for partition in range(2)
    for offset in range(ROWS)
]


def crashing(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Let the process end before its operation of this number, of those that change files."""
    left = itertools.count(after, -1)

    def patch(owner: Any, name: str) -> None:
        original: Callable[..., Any] = getattr(owner, name)

        def operation(*arguments: Any, **options: Any) -> Any:
            if next(left) <= 0:
                if name in {"write_parquet", "write_bytes"}:  # half of the file is there
                    Path(arguments[1] if name == "write_parquet" else arguments[0]).write_text("PAR1 half")
                raise Crash
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, operation)

    for owner, name in (
        (pl.DataFrame, "write_parquet"),
        (Path, "write_bytes"),
        (Path, "replace"),
        (Path, "mkdir"),
        (Path, "unlink"),
        (Path, "rmdir"),
    ):
        patch(owner, name)


def test_each_record_is_there_once_after_a_crash_at_any_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for after in itertools.count():
        path, crashed = tmp_path / str(after), 0
        path.mkdir()
        for size in (6, 7):  # a second crash, in the repair of the first; other sizes of parts
            with monkeypatch.context() as patch:
                crashing(patch, after if size == 6 else 2)
                try:
                    export(path, size)
                except Crash:
                    crashed += 1
            if next(path.rglob("*.parquet"), None):
                rows = found(path)
                assert len(rows) == len({row[1:3] for row in rows})
                assert set(rows) <= set(EXPECTED)
        export(path, 4)
        assert found(path) == EXPECTED
        assert [file.name for file in (path / INCOMPLETE).iterdir()] == []
        if not crashed:
            break
    assert after > 30


def test_what_is_in_the_manifest_is_what_is_there(tmp_path: Path) -> None:
    export(tmp_path)
    manifest = opened(tmp_path).manifest
    files = [file for partition in manifest.partitions.values() for file in partition.files]
    assert sorted(file.path for file in files) == sorted(
        str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.parquet")
    )
    for file in files:
        offsets = pl.read_parquet(tmp_path / file.path)["offset"]
        assert (len(offsets), offsets[0], offsets[-1]) == (file.records, file.first_offset, file.last_offset)
        assert (tmp_path / file.path).stat().st_size == file.bytes


def refusal(path: Path, topic: str = "outcomes", columns: Any = COLUMNS) -> ForksError:
    with pytest.raises(ForksError) as caught:
        ExportFolder(path, topic, columns)
    return caught.value


def test_another_export_is_not_continued(tmp_path: Path) -> None:
    export(tmp_path)
    assert "not of predictions" in str(refusal(tmp_path, "predictions"))
    other = refusal(tmp_path, columns={"offset": pl.Int64, "y": pl.Float64})
    assert isinstance(other, ConfigError)
    assert "other columns (x, y)" in str(other)
    (tmp_path / MANIFEST).write_text('{"topic": "outcomes", "columns": {}, "format": 2}')
    (tmp_path / MANIFEST).write_text('{"topic": 5')
    assert isinstance(refusal(tmp_path), StateError)
    (tmp_path / MANIFEST).unlink()
    assert "no _manifest.json" in str(refusal(tmp_path))


def test_a_disk_that_is_full_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    export_folder = opened(tmp_path)
    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(StorageError, match="No space left on device"):
        export_folder.append(0, {"2026-03-01": pl.DataFrame({"offset": [1]})}, 2)
    monkeypatch.undo()
    export(tmp_path)
    assert found(tmp_path) == EXPECTED
