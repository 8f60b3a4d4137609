"""Events of any stream from tables, and the messages that are made of them."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.stream import KUAIREC, Stream
from pipeline.errors import DataError
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import Interaction, Label
from pipeline.sources.kuairec import Events
from pipeline.sources.messages import StreamWriter, writer_of
from pipeline.sources.rows import read_rows
from pipeline.sources.schedule import order_of
from tests.support.record_strategies import ids

FLAT = Stream.model_validate(
    tomllib.loads(
        """
        name = "clicks"
        entities = { user = "/user", advert = "/ad/id" }
        interactions = { topic = "shown", event_id = "/id", time = "/at", numbers = { price = "/price" } }
        target = { name = "click", above = 0.5, cap = 1.0, scale = 0.5 }

        [labels]
        topic = "clicked"
        event_id = "/id"
        time = "/known"
        value = "/clicked"
        value_kind = "boolean"
        """
    )
)
ROWS: list[dict[str, Any]] = [
    {"user": "b", "ad.id": 2, "at": 2_000, "price": 1.5, "clicked": False},
    {"user": "a", "ad.id": 1, "at": 1_000, "price": 0.5, "clicked": True},
]
UNITS = ("ms", "us", "s", "iso8601")


def written(folder: Path, rows: list[dict[str, Any]], name: str = "rows.csv") -> Path:
    path, frame = folder / name, pl.DataFrame(rows)
    if path.suffix == ".csv":
        frame.write_csv(path)
    elif path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_ndjson(path)
    return path


def decoded(events: Events, stream: Stream) -> list[tuple[Interaction, Label]]:
    """Return the records of the messages of all events."""
    writer, decoders = writer_of(stream), InputDecoders.of(stream)
    return [
        (decoders.interactions.decode(writer.interaction(row)), decoders.labels.decode(writer.label(row)))
        for row in events.frame.select(writer.columns).iter_rows()
    ]


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.jsonl"])
def test_rows_are_sorted_and_lack_nothing(tmp_path: Path, name: str) -> None:
    events = read_rows(written(tmp_path, ROWS, name), FLAT, label_delay=500)
    [(first, first_label), (second, second_label)] = decoded(events, FLAT)
    assert (first.event_id, first.ids, first.timestamp) == (1, ("a", 1), 1_000)
    assert (first_label.event_id, first_label.timestamp, first_label.watch_ratio) == (1, 1_500, 1.0)
    assert (second.event_id, second.ids[0], second.timestamp) == (0, "b", 2_000)
    assert second_label.watch_ratio == 0.0
    assert (events.rows, events.skipped) == (2, {})


def test_columns_may_hold_objects_and_own_ids_and_times(tmp_path: Path) -> None:
    rows = [
        {"id": f"e{n}", "user": n, "ad": {"id": 7}, "at": n, "known": 9 + n, "price": 1, "clicked": n % 2}
        for n in range(3)
    ]
    for name in ("rows.parquet", "rows.jsonl"):
        events = read_rows(written(tmp_path, rows, name), FLAT, label_delay=500)
        pairs = decoded(events, FLAT)
        assert [pair[0].event_id for pair in pairs] == ["e0", "e1", "e2"]
        assert [pair[1].timestamp for pair in pairs] == [9, 10, 11]
        assert [pair[1].watch_ratio for pair in pairs] == [0.0, 1.0, 0.0]
        assert {pair[0].ids[1] for pair in pairs} == {7}


@pytest.mark.parametrize(
    ("unit", "time"),
    [
        ("ms", 1_772_366_400_250),
        ("us", 1_772_366_400_250_999),
        ("s", 1_772_366_400.25),
        ("iso8601", "2026-03-01T12:00:00.250Z"),
        ("iso8601", "2026-03-01T13:00:00.250+01:00"),
    ],
)
def test_units_of_times(tmp_path: Path, unit: str, time: object) -> None:
    definition = FLAT.model_dump()
    definition["interactions"]["time_unit"] = definition["labels"]["time_unit"] = unit
    stream = Stream.model_validate(definition)
    rows = [row | {"at": time, "known": time} for row in ROWS]
    for interaction, label in decoded(read_rows(written(tmp_path, rows), stream, 0), stream):
        assert interaction.timestamp == label.timestamp == 1_772_366_400_250


def test_dates_of_a_typed_table_need_no_unit(tmp_path: Path) -> None:
    time = datetime(2026, 3, 1, 12, 0, 0, 250_000, UTC)
    events = read_rows(written(tmp_path, [row | {"at": time} for row in ROWS], "rows.parquet"), FLAT, 0)
    assert events.frame["timestamp"].to_list() == [1_772_366_400_250] * 2


def test_rows_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    good = ROWS[0] | {"known": 3_000}
    bad: list[dict[str, Any]] = [
        {"user": None},
        {"at": None},
        {"price": None},
        {"price": -1.0},
        {"at": -1},
        {"known": 1_999},
    ]
    events = read_rows(written(tmp_path, [good, *(good | change for change in bad)]), FLAT, 0)
    assert len(events) == 1
    assert events.skipped == {
        "no_id": 1,
        "no_time": 1,
        "no_number": 1,
        "out_of_range": 2,
        "label_before_event": 1,
    }
    assert events.examples == {
        "no_id": "row 2: entities.user at /user is missing",
        "no_time": "row 3: interactions.time at /at is missing",
        "no_number": "row 4: interactions.price at /price is missing",
        "out_of_range": "row 5: interactions.price at /price is -1.0",
        "label_before_event": "row 7: labels.time at /known is 1999",
    }


def test_rows_without_a_label_are_interactions_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows = [f"u{number},{number},{number},1.0,{label}" for number, label in enumerate([1, "", "NA", "x", 0])]
    path.write_text("\n".join(["user,ad.id,at,price,clicked", *rows, "u5,5,5,,"]) + "\n")
    events = read_rows(path, FLAT, 10)
    assert events.frame["label_timestamp"].to_list() == [10, None, None, 14]
    assert (events.labels, events.skipped) == (2, {"no_number": 1, "no_value": 1})
    assert events.examples["no_value"] == "row 4: labels.value at /clicked is 'x'"
    assert "2 rows have no label: their interactions come alone" in events.taken_for
    assert order_of(events).tolist() == [0, 1, 2, 3, 4, 7]
    path.write_text("user,ad.id,at,price,clicked\nu1,1,1,1.0,\n")
    with pytest.raises(DataError, match="no row has a label: /clicked is empty"):
        read_rows(path, FLAT, 10)


def test_labels_may_be_in_a_file_of_their_own(tmp_path: Path) -> None:
    definition = FLAT.model_dump()
    for name in ("interactions", "labels"):
        definition[name]["event_id"] = "/id"
    stream, labels = Stream.model_validate(definition), tmp_path / "labels.csv"
    path = tmp_path / "rows.csv"
    rows = [f"{number},u{number},{number},{1000 + number},1.0" for number in range(4)]
    path.write_text("\n".join(["id,user,ad.id,at,price", *rows]) + "\n")
    labels.write_text(
        "known,id,clicked\n2000,2,true\n2001,0,false\n2002,2,false\n2003,77,true\n2004,1,\n,,\n"
    )
    events = read_rows(path, stream, 0, labels)
    assert events.frame["event_id"].to_list() == [0, 1, 2, 3]
    assert events.frame["label_timestamp"].to_list() == [2001, None, 2000, None]
    assert events.frame["watch_ratio"].to_list() == [0.0, None, 1.0, None]
    assert (events.rows, events.skipped) == (7, {"second_label": 1, "no_event": 2})
    assert events.examples == {
        "second_label": "labels.csv, row 3: '2'",
        "no_event": "labels.csv, row 4: '77'",
    }
    labels.write_text("id,other\n2,true\n")
    with pytest.raises(DataError, match=r"labels.csv: no column for /clicked; there are id, other"):
        read_rows(path, stream, 0, labels)
    labels.write_text("known,id,clicked\n1,2,true\n")
    found = read_rows(path, stream, 0, labels)
    assert found.examples == {"label_before_event": "row 3: labels.time at /known is 1"}


def test_ids_are_numbers_of_64_bits_or_text(tmp_path: Path) -> None:
    largest = 2**63 - 1
    path = tmp_path / "rows.csv"
    for second, user in (
        (largest, largest),
        (largest + 1, str(largest + 1)),
        (-largest - 2, str(-largest - 2)),
    ):
        path.write_text(
            f"user,ad.id,at,price,clicked\n5,1.0,1,1,true\n{second},2.0,2,1,true\n,3.0,3,1,true\n"
        )
        events = read_rows(path, FLAT, 0)
        pairs = decoded(events, FLAT)
        assert [each.ids for each, _ in pairs] == [(type(user)(5), 1), (user, 2)]
        assert events.skipped == {"no_id": 1}
    table = pl.DataFrame(ROWS)
    kinds = pl.col("user").cast(pl.Categorical), pl.col("ad.id").cast(pl.Float64)
    table.with_columns(*kinds).write_parquet(tmp_path / "rows.parquet")
    pairs = decoded(read_rows(tmp_path / "rows.parquet", FLAT, 0), FLAT)
    assert [each.ids for each, _ in pairs] == [("a", 1), ("b", 2)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"user": 1, "at": 5, "price": 1, "clicked": 1}], r"no column for /ad/id; there are user, at"),
        ([ROWS[0] | {"user": 1.5}], r"/user has values of the type Float64; ids are text or whole numbers"),
    ],
)
def test_a_column_that_is_missing_or_of_another_type_is_named(
    tmp_path: Path, rows: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_rows(written(tmp_path, rows), FLAT, 0)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.csv", b"", "the file is empty"),
        ("rows.csv", b"a,b\n1,\0\n", "it has zero bytes"),
        ("rows.csv.gz", b"a,b\n1,2\n", "cannot be decompressed"),
        ("rows.jsonl", b"{", "cannot be read as a table"),
        ("rows.parquet", b"PAR1", "cannot be read as a table"),
        ("rows.xlsx", b"", r"a table is a file of \.csv"),
    ],
)
def test_files_that_are_no_tables_are_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_rows(path, FLAT, 0)
    with pytest.raises(DataError, match="there is no such file"):
        read_rows(tmp_path / "none.csv", FLAT, 0)


@given(
    event_id=ids,
    user=ids,
    item=ids,
    times=st.tuples(st.integers(0, 2**47), st.integers(0, 2**47)).map(sorted),
    clicked=st.booleans(),
    unit=st.sampled_from(UNITS),
)
def test_what_is_written_is_what_decoders_read(  # noqa: PLR0917 - as hypothesis calls it
    event_id: Any, user: Any, item: Any, times: list[int], clicked: bool, unit: str
) -> None:
    definition = FLAT.model_dump()
    definition["interactions"]["time_unit"] = definition["labels"]["time_unit"] = unit
    stream = Stream.model_validate(definition)
    writer, decoders = StreamWriter(stream), InputDecoders.of(stream)
    row = [event_id, user, item, *times, float(clicked), 2.5]
    interaction = decoders.interactions.decode(writer.interaction(row))
    label = decoders.labels.decode(writer.label(row))
    found = interaction.event_id, *interaction.ids, interaction.timestamp
    assert found == (event_id, user, item, times[0])
    assert (label.event_id, label.timestamp, label.watch_ratio) == (event_id, times[1], float(clicked))


rows_of_kuairec = st.tuples(ids, ids, ids, st.integers(0, 2**53), st.integers(0, 2**53))
amounts = st.floats(0, 1e9)


@given(row=rows_of_kuairec, played=amounts, duration=amounts, ratio=amounts)
def test_kuairec_s_messages_are_those_of_its_definition(
    row: tuple[Any, ...], played: float, duration: float, ratio: float
) -> None:
    static, compiled = writer_of(KUAIREC), StreamWriter(KUAIREC)
    one, other = [*row, played, duration, ratio], [*row, ratio, duration, played]
    assert static.interaction(one) == compiled.interaction(other)
    assert static.label(one) == compiled.label(other)


def test_signals_of_a_table_are_sent_as_their_text(tmp_path: Path) -> None:
    definition = KUAIREC.model_dump(mode="json")
    labels = {
        "value_kind": "signal",
        "value": "/action",
        "signals": {"like": 2.0, "hide": -1.0},
        "numbers": {},
    }
    stream = Stream.model_validate(
        definition
        | {"labels": definition["labels"] | labels}
        | {"interactions": definition["interactions"] | {"numbers": {}}}
    )
    path = tmp_path / "rows.csv"
    path.write_text("event_id,user_id,video_id,timestamp,action\na,1,2,5,like\nb,1,2,6,hide\nc,1,2,7,share\n")
    events = read_rows(path, stream, label_delay=10)
    assert events.skipped == {"no_value": 1}
    writer, decoders = writer_of(stream), InputDecoders.of(stream)
    rows = events.frame.select(writer.columns).rows()
    assert [decoders.labels.decode(writer.label(row)).watch_ratio for row in rows] == [2.0, -1.0]
    assert b'"action":"hide"' in writer.label(rows[1])


def test_a_signal_that_counts_as_another_does_is_sent_as_itself(tmp_path: Path) -> None:
    labels = FLAT.labels.model_dump(mode="json")
    labels |= {"value_kind": "signal", "signals": {"click": 1, "buy": 1}, "weights": {"buy": 5.0}}
    stream = Stream.model_validate(FLAT.model_dump(mode="json") | {"labels": labels})
    rows = [ROWS[0] | {"clicked": "buy"}, ROWS[1] | {"clicked": "click"}]
    found = decoded(read_rows(written(tmp_path, rows), stream, label_delay=10), stream)
    assert [(label.watch_ratio, label.weight) for _, label in found] == [(1.0, 1.0), (1.0, 5.0)]


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.parquet"])
def test_weights_of_a_table_are_sent(tmp_path: Path, name: str) -> None:
    labels = FLAT.labels.model_dump(mode="json") | {"weight": "/worth"}
    stream = Stream.model_validate(FLAT.model_dump(mode="json") | {"labels": labels})
    worth = [2.5, 0.0, 1000.0, -0.5, 1000.5, None]
    rows = [ROWS[0] | {"at": 1_000 + number, "worth": each} for number, each in enumerate(worth)]
    events = read_rows(written(tmp_path, rows, name), stream, label_delay=10)
    assert events.skipped == {"out_of_range": 2, "no_number": 1}
    assert [label.weight for _, label in decoded(events, stream)] == [2.5, 0.0, 1000.0]
    with pytest.raises(DataError, match="no column for /worth"):
        read_rows(written(tmp_path, ROWS, name), stream, label_delay=10)


def test_what_is_carried_is_taken_where_there_is_a_column(tmp_path: Path) -> None:
    definition = FLAT.model_dump()
    definition["interactions"] |= {"propensity": "/p", "target_propensity": "/ad/q"}
    stream = Stream.model_validate(definition)
    rows = [row | {"p": value} for row, value in zip(ROWS, (None, 0.25), strict=True)]
    events = read_rows(written(tmp_path, rows), stream, label_delay=500)
    assert [interaction.carried for interaction, _ in decoded(events, stream)] == [(0.25, None), (None, None)]
