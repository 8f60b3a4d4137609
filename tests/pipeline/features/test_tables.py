from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import DataError
from pipeline.features.tables import (
    DAILY_COUNTS,
    USER_CATEGORIES,
    USER_FLAGS,
    DailyTable,
    Tables,
    TagTable,
    UserTable,
)

USER_COLUMNS = ("user_id", *USER_FLAGS, *USER_CATEGORIES)
COUNT_COLUMNS = tuple(f"{name}_user_num" for name in DAILY_COUNTS)
DAILY_COLUMNS = ("video_id", "date", "play_progress", "play_user_num", *COUNT_COLUMNS)


def write(path: Path, columns: tuple[str, ...], *rows: dict[str, object]) -> Path:
    """Write a CSV file; columns that a row does not name are empty."""
    text_rows = [",".join(columns), *(",".join(str(row.get(name, "")) for name in columns) for row in rows)]
    path.write_text("\n".join(text_rows) + "\n")
    return path


def users(folder: Path, *rows: dict[str, object]) -> UserTable:
    return UserTable(write(folder / "users.csv", USER_COLUMNS, *rows))


def tags(folder: Path, *rows: str) -> TagTable:
    path = folder / "tags.csv"
    path.write_text("\n".join(["video_id,feat", *rows]) + "\n")
    return TagTable(path)


def test_the_lists_of_tags_are_the_indicators_set(tmp_path: Path) -> None:
    table = tags(tmp_path, '7,"[8, 3, 8]"', "9,[0]", "10,[]")
    assert table.lists.count == table.columns == 9
    for video in (7, 9, 10, "unknown"):
        position = table.lists.find(video)
        length = int(table.lists.packed[position])
        own = table.lists.packed[position + 1 : position + 1 + length].tolist()
        assert own == np.flatnonzero(table.block(video)).tolist()


def daily_file(folder: Path, *rows: dict[str, object]) -> Path:
    return write(folder / "daily.csv", DAILY_COLUMNS, *rows)


def utc(text: str) -> int:
    """Return a UTC time as milliseconds since 1970."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_a_users_block_is_flags_and_then_dummies_in_sorted_order(tmp_path: Path) -> None:
    table = users(
        tmp_path,
        {"user_id": 1, "is_live_streamer": 1, "user_active_degree": "full", "onehot_feat0": 10},
        {"user_id": 2, "is_video_author": 1, "user_active_degree": "high", "onehot_feat0": 9},
        {"user_id": 3, "is_lowactive_period": 1},
    )
    assert table.columns == 3 + 2 + 2
    assert table.block(1).tolist() == [0, 1, 0, 1, 0, 0, 1]
    assert table.block(2).tolist() == [0, 0, 1, 0, 1, 1, 0]
    assert table.block(3).tolist() == [1, 0, 0, 0, 0, 0, 0], "missing values are all zeros"


def test_flags_are_0_or_1_even_where_the_file_marks_the_unknown_otherwise(tmp_path: Path) -> None:
    table = users(
        tmp_path,
        {"user_id": 1, "is_lowactive_period": -124, "is_live_streamer": 7, "is_video_author": "UNKNOWN"},
    )
    assert table.block(1).tolist() == [0, 1, 0]


def test_a_user_table_without_users_has_only_flags(tmp_path: Path) -> None:
    assert users(tmp_path).columns == 3


def test_a_videos_tags_are_indicators(tmp_path: Path) -> None:
    table = tags(tmp_path, "5,[2]", '6,"[0, 3]"', "7,[]")
    assert table.columns == 4
    assert table.block(5).tolist() == [0, 0, 1, 0]
    assert table.block(6).tolist() == [1, 0, 0, 1]
    assert table.block(7).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("line", ["5,[-1]", "5, tag", '5,"[1,"', "5,[1.5]", "5,", '5,"{}"', "5, 7"])
def test_tags_of_another_kind_are_refused_with_the_file(tmp_path: Path, line: str) -> None:
    with pytest.raises(DataError, match=r"tags\.csv: column feat must hold lists of tag numbers"):
        tags(tmp_path, "4,[0]", line)


def test_daily_ratios_are_over_the_users_who_played(tmp_path: Path) -> None:
    counts = {f"{name}_user_num": number for number, name in enumerate(DAILY_COUNTS, start=1)}
    file = daily_file(
        tmp_path, {"video_id": 5, "date": 20200705, "play_progress": 0.5, "play_user_num": 10, **counts}
    )
    block = DailyTable(file, same_day=True).block(5, utc("2020-07-05T12:00"))
    assert block.tolist() == [0.5, 0.1, 0.2, 0.3, 0.4, 0.5]


def test_a_day_without_players_or_with_missing_values_is_zeros(tmp_path: Path) -> None:
    file = daily_file(
        tmp_path,
        {"video_id": 5, "date": 20200705, "play_user_num": 0, "like_user_num": 3},
        {"video_id": 6, "date": 20200705, "play_progress": 0.5, "play_user_num": 4, "share_user_num": 1},
    )
    table = DailyTable(file, same_day=True)
    noon = utc("2020-07-05T04:00")
    assert table.block(5, noon).tolist() == [0] * 6
    assert table.block(6, noon).tolist() == [0.5, 0, 0.25, 0, 0, 0]


@pytest.fixture
def progress_file(tmp_path: Path) -> Path:
    """Play progress 0.05 on the fifth of July, and so on; nothing on the seventh; not in order."""
    rows: list[dict[str, object]] = [
        {"video_id": 5, "date": f"202007{day:02}", "play_progress": day / 100, "play_user_num": 1}
        for day in (8, 5, 6)
    ]
    return daily_file(tmp_path, *rows)


@pytest.mark.parametrize(
    ("moment", "before", "same"),
    [
        ("2020-07-04T15:59:59.999", 0.0, 0.0),  # the fourth in China: nothing is known
        ("2020-07-04T16:00:00.000", 0.0, 0.05),  # midnight in China: the fifth begins
        ("2020-07-05T15:59:59.999", 0.0, 0.05),
        ("2020-07-05T16:00:00.000", 0.05, 0.06),
        ("2020-07-06T16:00:00.000", 0.06, 0.06),  # the seventh is not in the table
        ("2020-07-07T16:00:00.000", 0.06, 0.08),  # on the eighth, the latest day before is the sixth
        ("2020-07-08T16:00:00.000", 0.08, 0.08),
        ("2021-01-01T00:00:00.000", 0.08, 0.08),
    ],
)
def test_daily_figures_are_those_of_a_day_before_in_china_unless_the_same_day_is_asked_for(
    progress_file: Path, moment: str, before: float, same: float
) -> None:
    assert DailyTable(progress_file, same_day=False).block(5, utc(moment))[0] == before
    assert DailyTable(progress_file, same_day=True).block(5, utc(moment))[0] == same


def test_of_a_day_given_twice_the_later_row_counts(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"video_id": video, "date": 20200705, "play_progress": number, "play_user_num": 1}
        for number in range(50)
        for video in (5, 6)
    ]
    table = DailyTable(daily_file(tmp_path, *rows), same_day=True)
    assert table.block(5, utc("2020-07-05T12:00"))[0] == 49


@pytest.mark.parametrize(
    "row",
    [
        {"date": "2020-07-05"},
        {"date": 20201305},
        {"date": 20200705, "play_progress": "half"},
        {"date": 20200705, "play_progress": "NaN"},
        {"date": 20200705, "play_progress": "inf"},
        {"date": 20200705, "play_user_num": "many"},
        {"date": 20200705, "play_user_num": 1, "like_user_num": "?"},
    ],
)
def test_daily_values_of_another_kind_are_refused_with_the_file(
    tmp_path: Path, row: dict[str, object]
) -> None:
    with pytest.raises(DataError, match=r"daily\.csv"):
        DailyTable(daily_file(tmp_path, {"video_id": 5} | row), same_day=False)


@pytest.fixture
def tables(tmp_path: Path, progress_file: Path) -> Tables:
    users(tmp_path, {"user_id": 1, "is_live_streamer": 1, "user_active_degree": "full"})
    tags(tmp_path, "5,[1]")
    return Tables(tmp_path / "users.csv", tmp_path / "tags.csv", progress_file)


def test_the_blocks_stand_side_by_side(tables: Tables) -> None:
    assert tables.columns == 4 + 2 + 6
    x = np.full(14, 9.0)
    tables.fill(x, 1, 5, utc("2020-07-06T12:00"))
    assert x.tolist() == [0, 1, 0, 1, 0, 1, 0.05, 0, 0, 0, 0, 0, 9, 9]


def test_whoever_a_table_does_not_know_gets_zeros(tables: Tables) -> None:
    for user_id, video_id in ((2, 6), ("1", "5"), (-1, "x"), (2**62, -(2**62))):
        x = np.full(12, 9.0)
        tables.fill(x, user_id, video_id, utc("2020-07-06T12:00"))
        assert x.tolist() == [0] * 12


def test_each_table_may_be_missing(tmp_path: Path, tables: Tables) -> None:
    only = Tables(tags=tmp_path / "tags.csv")
    x = np.full(3, 9.0)
    only.fill(x, 1, 5, 0)
    assert x.tolist() == [0, 1, 9]


def test_the_digest_follows_content_and_choice_of_day_but_not_the_path(
    tmp_path: Path, tables: Tables, progress_file: Path
) -> None:
    paths = (tmp_path / "users.csv", tmp_path / "tags.csv", progress_file)
    moved = tmp_path / "moved.csv"
    moved.write_bytes(paths[0].read_bytes())
    assert Tables(moved, *paths[1:]).digest == tables.digest
    extended = tmp_path / "extended.csv"
    extended.write_bytes(paths[0].read_bytes() + b"2\n")
    others = {
        Tables(extended, *paths[1:]).digest,
        Tables(*paths, same_day=True).digest,
        Tables(*paths[:2]).digest,
        Tables().digest,
        tables.digest,
    }
    assert len(others) == 5


@pytest.mark.parametrize("missing", ["user_id", "onehot_feat17", "register_days_range"])
def test_missing_columns_are_named_with_the_file(tmp_path: Path, missing: str) -> None:
    columns = tuple(name for name in USER_COLUMNS if name != missing)
    with pytest.raises(DataError, match=rf"users\.csv lacks the column\(s\) {missing}"):
        UserTable(write(tmp_path / "users.csv", columns))


def test_a_file_that_is_no_table_or_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.csv: cannot be read"):
        TagTable(tmp_path / "nowhere.csv")
    empty = tmp_path / "empty.csv"
    empty.touch()
    with pytest.raises(DataError, match=r"empty\.csv cannot be read as a table"):
        DailyTable(empty, same_day=False)


def test_kuairecs_tables_have_the_columns_of_the_authors_set(kuairec: Path) -> None:
    files = ("user_features.csv", "item_categories.csv", "item_daily_features.csv")
    tables = Tables(*(kuairec / name for name in files))
    assert tables.users is not None
    assert tables.tags is not None
    assert tables.daily is not None
    assert (tables.users.columns, tables.tags.columns, tables.daily.columns) == (175, 31, 6)
    assert tables.columns == 212
    x = np.full(212, 9.0)
    tables.fill(x, 0, 0, utc("2020-07-06T12:00"))
    dummies, tag_part, daily = x[3:175], x[175:206], x[206:]
    assert x[:3].tolist() == [0, 0, 0]
    assert set(dummies) == {0.0, 1.0}
    assert dummies.sum() == len(USER_CATEGORIES)
    assert np.flatnonzero(tag_part).tolist() == [8]
    assert daily.tolist() == [0.7998600086607257, *(count / 7485 for count in (569, 2, 11, 284, 3))]
