from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import DataError
from pipeline.records import kuairec as kuairec_records
from pipeline.sources import kuairec
from pipeline.sources.kuairec import Events, read_events

HEADER = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio"
GOOD = "14,1379,8512,12088,2020-07-07 06:17:59.451,20200707.0,1594073879.452,0.7041694242223693"

Row = tuple[int, int, int]  # user, video, timestamp in milliseconds


def write(folder: Path, *lines: str) -> Path:
    file = folder / "matrix.csv"
    file.write_text("\n".join([HEADER, *lines, ""]))
    return file


def read_rows(folder: Path, rows: Sequence[Row]) -> Events:
    lines = (
        f"{user},{video},5,10,,,{timestamp / 1000!r},{n}" for n, (user, video, timestamp) in enumerate(rows)
    )
    return read_events(write(folder, *lines))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kuairec")


rows_with_repeats = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 3)), max_size=30)


def test_a_row_becomes_an_event_with_integer_milliseconds(tmp_path: Path) -> None:
    events = read_events(write(tmp_path, GOOD))
    assert events.frame.rows(named=True) == [
        {
            "event_id": "14-1379-1594073879452",
            "user_id": 14,
            "video_id": 1379,
            "timestamp": 1594073879452,
            "label_timestamp": 1594073887964,
            "play_duration": 8512.0,
            "video_duration": 12088.0,
            "watch_ratio": 0.7041694242223693,
        }
    ]


def test_rows_that_cannot_be_used_are_counted_by_reason(tmp_path: Path) -> None:
    events = read_events(
        write(
            tmp_path,
            GOOD,
            "14,10046,254130,216000,,,,1.17",
            "14,10046,,,,,,1.17",
            "166,3923,,,2020-08-09 10:24:49.914,20200809.0,1596939889.914,1.66",
            "166,3923,1,1,,,1596939889.914,",
            ",3923,1,1,,,1596939889.914,1",
            "166,3923,-1,1,,,1596939889.914,1",
            "166,3923,1,NaN,,,1596939889.914,1",
            "166,3923,1,1,,,1596939889.914,inf",
            "166,3923,1,1,,,-5,1",
            "166,3923,1,1,,,1e300,1",
        )
    )
    assert len(events) == 1
    assert events.rows == 11
    assert events.skipped == {
        "no_timestamp": 2,
        "no_duration": 1,
        "no_watch_ratio": 1,
        "no_id": 1,
        "out_of_range": 5,
    }


@given(rows=rows_with_repeats)
def test_interactions_come_by_time_and_then_by_position(folder: Path, rows: list[Row]) -> None:
    events = read_rows(folder, rows)
    expected = sorted(range(len(rows)), key=lambda n: rows[n][2])
    assert events.frame["watch_ratio"].to_list() == expected


@given(rows=rows_with_repeats)
def test_event_ids_are_unique_and_the_first_of_its_kind_has_no_number(folder: Path, rows: list[Row]) -> None:
    frame = read_rows(folder, rows).frame
    assert frame["event_id"].n_unique() == len(rows)
    named = {event_id for event_id in frame["event_id"] if "#" not in event_id}
    assert named == {f"{user}-{video}-{timestamp}" for user, video, timestamp in rows}


@given(rows=rows_with_repeats, more=rows_with_repeats)
def test_event_ids_do_not_depend_on_rows_of_others(folder: Path, rows: list[Row], more: list[Row]) -> None:
    own = set(rows)
    mixed = rows + [row for row in more if row not in own]
    alone = read_rows(folder, rows).frame["event_id"].to_list()
    among = [
        event_id
        for event_id, *row in read_rows(folder, mixed)
        .frame.select("event_id", "user_id", "video_id", "timestamp")
        .rows()
        if tuple(row) in own
    ]
    assert among == alone


def test_the_byte_order_mark_of_the_big_matrix_is_no_part_of_a_name(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert len(read_events(file)) == 1


def test_a_folder_gives_the_small_matrix_or_the_one_asked_for(tmp_path: Path) -> None:
    write(tmp_path, GOOD).rename(tmp_path / "small_matrix.csv")
    write(tmp_path, GOOD, GOOD).rename(tmp_path / "big_matrix.csv")
    assert len(read_events(tmp_path)) == 1
    assert len(read_events(tmp_path, "big_matrix.csv")) == 2


def test_first_keeps_the_earliest_events_and_the_counts(tmp_path: Path) -> None:
    events = read_events(write(tmp_path, GOOD, GOOD.replace("1594073879", "1594073870"), "1,1,,,,,,1"))
    assert events.first(1).frame["timestamp"].to_list() == [1594073870452]
    assert events.first(1).skipped == {"no_timestamp": 1}
    assert len(events.first(None)) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        (
            "user_id,video_id,play_duration\n1,2,3\n",
            "line 1: no column video_duration, timestamp, watch_ratio;",
        ),
        (f"{HEADER}\n{GOOD}\n1,2,3,4,,,soon,1\n", "line 3, column timestamp: 'soon' is not a number"),
        (f"{HEADER}\n1.5,2,3,4,,,5,1\n", "line 2, column user_id: '1.5' is not an integer"),
        (f'{HEADER}\n1,2,"3,4,,,5,1\n', "not a CSV file as expected"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_line_and_column(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "matrix.csv"
    file.write_text(text)
    with pytest.raises(DataError) as caught:
        read_events(file)
    assert message in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_missing_file_or_matrix_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file or folder"):
        read_events(tmp_path / "nowhere")
    write(tmp_path, GOOD)
    with pytest.raises(
        DataError, match=r"no small_matrix\.csv \(there is matrix\.csv\); choose a file with --matrix"
    ):
        read_events(tmp_path)


def test_whatever_is_kept_is_a_valid_record(tmp_path: Path) -> None:
    longest, highest = kuairec.LONGEST_DURATION, kuairec.HIGHEST_WATCH_RATIO
    latest = (kuairec.LATEST_TIMESTAMP - longest) / 1000
    file = write(
        tmp_path,
        f"{2**63 - 1},{-(2**63)},{longest},{longest},,,{latest!r},{highest}",
        "0,0,0,0,,,0,0",
    )
    events = read_events(file)
    assert len(events) == 2
    for row in events.frame.iter_rows(named=True):
        msgspec.convert(row, kuairec_records.KuaiRecInteraction)
        msgspec.convert(row | {"timestamp": row["label_timestamp"]}, kuairec_records.WatchLabel)


def test_the_real_small_matrix_reads_as_described(kuairec: Path) -> None:
    events = read_events(kuairec)
    assert events.rows == len(events) + sum(events.skipped.values()) == 70_301
    assert events.skipped == {"no_timestamp": 2_662, "no_duration": 32}
    assert events.frame["event_id"].n_unique() == len(events)
    assert events.frame["timestamp"].is_sorted()
