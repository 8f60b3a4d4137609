"""User and video tables: the blocks of the context vector that are known before the stream.

The columns are those of the FORKS authors' KuaiRec set: three binary user fields, the dummies of
user_active_degree, of four ranges and of sixteen of the encrypted fields, the video's tags, and six
ratios of the daily video table. A user or video that is not in a table gets zeros.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.extras import require
from pipeline.features.tags import TagLists
from pipeline.input_files import refuse_large, refuse_large_table
from pipeline.records.fields import Id
from pipeline.truncate import truncate

if TYPE_CHECKING:
    import polars as pl

Vector = NDArray[np.float64]

USER_FLAGS = ("is_lowactive_period", "is_live_streamer", "is_video_author")
USER_CATEGORIES = (
    "user_active_degree",
    "follow_user_num_range",
    "fans_user_num_range",
    "friend_user_num_range",
    "register_days_range",
    *(f"onehot_feat{i}" for i in (0, 1, 2, 4, 5, 6, 7, *range(9, 18))),
)
DAILY_COUNTS = ("like", "share", "comment", "follow", "reduce_similar")
DAY = 86_400_000
KUAIREC_ZONE = 8 * 3_600_000
"""The daily table's dates are those of China: UTC+8, in milliseconds."""

_TAGS = msgspec.json.Decoder(list[Annotated[int, msgspec.Meta(ge=0, lt=2**31)]])


class UserTable:
    """KuaiRec's user_features.csv: for each user flags, then dummies; a missing value is all zeros."""

    def __init__(self, path: Path) -> None:
        table = _read(path, ["user_id", *USER_FLAGS, *USER_CATEGORIES])
        import polars as pl  # noqa: PLC0415 - of the extra `tables`

        flags = table.select(pl.col(USER_FLAGS).cast(pl.Float64, strict=False).fill_null(0.0).clip(0.0, 1.0))
        categories = sum(table[name].drop_nulls().n_unique() for name in USER_CATEGORIES)
        refuse_large_table(str(path), len(table), len(USER_FLAGS) + categories)
        blocks = [flags.to_numpy(), *(_dummies(table[name]) for name in USER_CATEGORIES)]
        self._values = np.ascontiguousarray(np.hstack(blocks))
        self._rows = {user: row for row, user in enumerate(table["user_id"].to_list())}
        self.columns: int = self._values.shape[1]
        self._unknown = np.zeros(self.columns)

    def block(self, user_id: Id) -> Vector:
        """Return the user's values, shape (columns,)."""
        row = self._rows.get(user_id)
        return self._unknown if row is None else self._values[row]


class TagTable:
    """KuaiRec's item_categories.csv: for each video an indicator of each tag; `lists` has the tags."""

    def __init__(self, path: Path) -> None:
        table = _read(path, ["video_id", "feat"])
        import polars as pl  # noqa: PLC0415 - of the extra `tables`

        try:
            tags = [_TAGS.decode(text or "") for text in table["feat"].cast(pl.Utf8).to_list()]
        except msgspec.DecodeError as error:
            raise DataError(
                f"{path}: column feat must hold lists of tag numbers like [8, 12]: {error}"
            ) from error
        videos = table["video_id"].to_list()
        self.lists = TagLists(dict(zip(videos, tags, strict=True)))
        self.columns = 1 + max((tag for row in tags for tag in row), default=-1)
        refuse_large_table(f"{path}, column feat", len(tags), self.columns)
        self._values = np.zeros((len(tags), self.columns))
        for row, row_tags in enumerate(tags):
            self._values[row, row_tags] = 1.0
        self._rows = {video: row for row, video in enumerate(videos)}
        self._unknown = np.zeros(self.columns)

    def block(self, video_id: Id) -> Vector:
        """Return the video's indicators, shape (columns,)."""
        row = self._rows.get(video_id)
        return self._unknown if row is None else self._values[row]


class DailyTable:
    """Ratios of a video by day: play_progress, and five counts of users over those who played it.

    Parameters
    ----------
    path
        KuaiRec's item_daily_features.csv.
    same_day
        Whether to use the figures of the event's own day, as the authors did, although they are complete
        only when that day is over. Otherwise they are the latest of the days before.
    """

    columns = 1 + len(DAILY_COUNTS)

    def __init__(self, path: Path, same_day: bool) -> None:
        values = _daily_ratios(path)
        self._newest_day = 0 if same_day else -1
        self._values = np.ascontiguousarray(values.drop("video_id", "day").to_numpy())
        self._rows: dict[Id, tuple[list[int], list[int]]] = {}
        pairs = zip(values["video_id"].to_list(), values["day"].to_list(), strict=True)
        for row, (video, day) in enumerate(pairs):
            days, rows = self._rows.setdefault(video, ([], []))
            days.append(day)
            rows.append(row)
        self._unknown = np.zeros(self.columns)

    def block(self, video_id: Id, timestamp: int) -> Vector:
        """Return the video's ratios for an event at `timestamp` (milliseconds, UTC), shape (6,)."""
        known = self._rows.get(video_id)
        if known is None:
            return self._unknown
        days, rows = known
        today = (timestamp + KUAIREC_ZONE) // DAY
        position = bisect_left(days, today + self._newest_day + 1) - 1
        return self._unknown if position < 0 else self._values[rows[position]]


class Tables:
    """The static blocks of the context vector, side by side. Each table may be missing.

    Parameters
    ----------
    users, tags, daily
        KuaiRec's files; None for no such block.
    same_day
        As for `DailyTable`.

    Attributes
    ----------
    columns
        The number of columns of all blocks.

    Examples
    --------
    >>> Tables().columns
    0
    """

    def __init__(
        self,
        users: Path | None = None,
        tags: Path | None = None,
        daily: Path | None = None,
        *,
        same_day: bool = False,
    ) -> None:
        self.users = UserTable(users) if users else None
        self.tags = TagTable(tags) if tags else None
        self.daily = DailyTable(daily, same_day) if daily else None
        self.columns = sum(table.columns for table in (self.users, self.tags, self.daily) if table)
        self.digest = _digest([users, tags, daily], same_day)
        """SHA-256 of the tables' files and of `same_day`: other tables make another model."""

    def fill(self, x: Vector, user_id: Id, video_id: Id, timestamp: int) -> None:
        """Write the static blocks of an event into the first `columns` entries of x."""
        end = 0
        if self.users:
            end = self.users.columns
            x[:end] = self.users.block(user_id)
        if self.tags:
            x[end : end + self.tags.columns] = self.tags.block(video_id)
            end += self.tags.columns
        if self.daily:
            x[end : end + self.daily.columns] = self.daily.block(video_id, timestamp)


def _read(path: Path, columns: list[str]) -> pl.DataFrame:
    require(f"to read the table {path}", "polars")
    import polars as pl  # noqa: PLC0415 - of the extra `tables`

    refuse_large(path)
    try:
        table = pl.read_csv(path, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = truncate(str(error).splitlines()[0])
        raise DataError(f"{path} cannot be read as a table: {reason}") from error
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise DataError(f"{path} lacks the column(s) {', '.join(missing)}")
    return table


def _dummies(column: pl.Series) -> NDArray[np.float64]:
    values = column.drop_nulls().unique().sort().to_list()
    dummies = np.zeros((len(column), len(values)))
    for number, value in enumerate(values):
        dummies[:, number] = (column == value).fill_null(False).to_numpy()
    return dummies


def _daily_ratios(path: Path) -> pl.DataFrame:
    """Read video_id, day (since 1970) and the ratios, sorted by video and day; ties keep the file's order."""
    counts = [f"{name}_user_num" for name in DAILY_COUNTS]
    table = _read(path, ["video_id", "date", "play_progress", "play_user_num", *counts])
    import polars as pl  # noqa: PLC0415 - of the extra `tables`

    plays = pl.col("play_user_num").cast(pl.Float64)
    ratios = [
        pl.col("play_progress").cast(pl.Float64).fill_null(0.0),
        *(
            pl.when(plays > 0).then(pl.col(count).cast(pl.Float64) / plays).fill_null(0.0).alias(count)
            for count in counts
        ),
    ]
    day = pl.col("date").cast(pl.Utf8).str.to_date("%Y%m%d").cast(pl.Int32).alias("day")
    try:
        values = table.select("video_id", day, *ratios)
    except pl.exceptions.PolarsError as error:
        reason = truncate(str(error).splitlines()[0])
        raise DataError(
            f"{path}: dates must be like 20200705, and figures must be numbers: {reason}"
        ) from error
    if not values.select(pl.all_horizontal(pl.col("play_progress", *counts).is_finite().all())).item():
        raise DataError(f"{path}: play_progress and counts of users must be finite numbers")
    return values.sort("video_id", "day", maintain_order=True)


def _digest(paths: list[Path | None], same_day: bool) -> str:
    digest = hashlib.sha256(b"same day" if same_day else b"day before")
    for path in paths:
        digest.update(b"none" if path is None else _digest_of(path))
    return digest.hexdigest()


def _digest_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
