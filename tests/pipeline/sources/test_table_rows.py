"""Rows of files as records of live tables."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ConfigError, DataError
from pipeline.features.live_tables import TableRecord, tables_of
from pipeline.sources.table_rows import BEGINNING, TableRow, TableRows
from tests.pipeline.sources.test_rows import written
from tests.support.live_tables import STREAM

ITEMS: list[dict[str, Any]] = [
    {"id": "i1", "at": 50, "price": 3, "sold": True, "genre": "thai"},
    {"id": "i2", "at": 60, "price": 4.5, "sold": None, "genre": None},
]


def records_of(path: Path, name: str) -> tuple[TableRows, list[TableRow]]:
    rows = TableRows(path, STREAM, name)
    return rows, [record for record in rows.records() if record is not None]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_rows_become_records_that_the_table_reads(tmp_path: Path, suffix: str) -> None:
    rows, records = records_of(written(tmp_path, ITEMS, f"items.{suffix}"), "items")
    features = tables_of(STREAM)[0]
    decoded = [features.decode(*record) for record in records]
    found = [
        (each.key, each.timestamp, array("d", each.row or b"").tolist())
        for each in decoded
        if isinstance(each, TableRecord)
    ]
    assert [(key, at) for key, at, _ in found] == [(b"i1", 50), (b"i2", 60)]
    assert [row[2] for *_, row in found] == [1.0, 1.0]
    assert found[0][2][1] == pytest.approx(1.3862943611198906)
    assert len(rows) == 2
    assert not rows.skipped


def test_rows_without_a_time_hold_from_the_beginning(tmp_path: Path) -> None:
    _, records = records_of(written(tmp_path, [{"courier": "c1", "speed": 4.5}]), "couriers")
    assert records == [TableRow(b"c1", b'{"speed":4.5}', BEGINNING)]


def test_rows_that_cannot_be_used_are_counted_with_an_example(tmp_path: Path) -> None:
    bad: list[dict[str, Any]] = [
        {"id": None, "at": 50, "price": 3.0},
        {"id": "i1", "at": None, "price": 3.0},
        {"id": "i" * 257, "at": 50, "price": 3.0},
        {"id": "i2", "at": 50, "price": None},
        {"id": "i3", "at": 50, "price": 3.0},
    ]
    rows, records = records_of(written(tmp_path, bad, "items.jsonl"), "items")
    assert [record.key for record in records] == [b"i3"]
    assert rows.skipped == {"no_id": 1, "no_time": 1, "wrong_key": 1, "invalid": 1}
    assert rows.example == "row 1: it has no id"


def test_text_in_the_place_of_a_number_is_named(tmp_path: Path) -> None:
    rows, records = records_of(written(tmp_path, [{"id": "i1", "at": 50, "price": "dear"}]), "items")
    assert (records, rows.skipped) == ([], {"invalid": 1})
    assert rows.example is not None
    assert "price" in rows.example


def test_a_table_or_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, [{"id": "i1", "price": 3.0}])
    with pytest.raises(ConfigError, match="no table 'places'; there are: items, couriers"):
        TableRows(path, STREAM, "places")
    with pytest.raises(DataError, match="no column for /at; there are id, price"):
        TableRows(path, STREAM, "items")
    with pytest.raises(DataError, match="no column for /courier; there are id, price"):
        TableRows(path, STREAM, "couriers")
