"""Files of other trades as tables: labels, numbers, categories and times, in the order of their rows.

A file without times gets a second for each row. Times that stand still, or go back, are moved on, so that
each label comes before the next event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import polars as pl

from bench.kuairand import TARGETS, rows_by_time
from bench.options import Options
from forks.arrays import BoolArray, FloatArray, IntArray
from pipeline.config.stream import KUAIREC
from pipeline.config.stream_features import TimeFeature
from pipeline.config.target_settings import BinarySettings, RegressionSettings, TargetSettings
from pipeline.sources.kuairec import read_events

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HALF_HOUR: Final = 30 * MINUTE
DAY: Final = 48 * HALF_HOUR
"""Milliseconds."""
FIRST_WEEKDAY: Final = 3
"""Day of the week of the first day of 1970, from Monday on."""
STEP: Final = 2
"""Milliseconds between two events, at least: the label of the first one comes after half of them."""
NONE: Final = "none"
"""What an empty category counts as."""
CLICKED: Final = BinarySettings(name="clicked", above=0.5, cap=1.0, scale=0.5)
"""A label that is 0 or 1."""


@dataclass(frozen=True)
class Table:
    """The events of a file.

    Attributes
    ----------
    name
        Name of the file or of its label.
    target
        What the labels mean.
    labels
        Labels as numbers, shape (n,).
    times
        Milliseconds since 1970, each `STEP` or more after the one before, shape (n,).
    categories, entities
        Texts by name; those that are entities have running statistics in this project.
    numbers
        Numbers by name, NaN where there is none, each of shape (n,).
    logarithms
        Names of the numbers whose logarithm is the feature.
    cycles
        Which of the hour of the day and the day of the week are features.
    utc_offset
        Offset of the local time.
    """

    name: str
    target: TargetSettings
    labels: FloatArray
    times: IntArray
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    entities: Mapping[str, Sequence[str]] = field(default_factory=dict)
    numbers: Mapping[str, FloatArray] = field(default_factory=dict)
    logarithms: frozenset[str] = frozenset()
    cycles: tuple[str, ...] = ()
    utc_offset: str = "+00:00"

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.labels)

    @property
    def positive(self) -> BoolArray | None:
        """Which labels are positive, shape (n,); None where numbers are predicted."""
        if isinstance(self.target, RegressionSettings):
            return None
        found: BoolArray = self.labels > self.target.above
        return found

    def features(self) -> dict[str, FloatArray]:
        """Return the numbers as the other learners get them, by name, each of shape (n,).

        What is missing is 0. Logarithms are taken, and hour and weekday are a sine and a cosine, as this
        project does.
        """
        found = dict[str, FloatArray]()
        for name, values in self.numbers.items():
            filled = np.nan_to_num(values)
            found[name] = np.sign(filled) * np.log1p(np.abs(filled)) if name in self.logarithms else filled
        offset = TimeFeature.model_validate({"kind": "hour", "utc_offset": self.utc_offset}).utc_offset
        local = self.times + MINUTE * offset
        places = {"hour": local % DAY / DAY, "weekday": (local // DAY + FIRST_WEEKDAY) % 7 / 7}
        for cycle in self.cycles:
            turn = 2.0 * np.pi * places[cycle]
            found |= {f"{cycle}_sine": np.sin(turn), f"{cycle}_cosine": np.cos(turn)}
        return found

    def first(self, count: int | None) -> Table:
        """Return the table of the first rows; the whole one if `count` is None."""
        return replace(
            self,
            labels=self.labels[:count],
            times=self.times[:count],
            categories={name: each[:count] for name, each in self.categories.items()},
            entities={name: each[:count] for name, each in self.entities.items()},
            numbers={name: each[:count] for name, each in self.numbers.items()},
        )


def tables(options: Options) -> Mapping[str, Callable[[], Table]]:
    """Return what reads each table, by its name: five files, the labels of KuaiRand, and KuaiRec's sample."""
    files = options.folder("files")
    found: dict[str, Callable[[], Table]] = {name: _reader(READERS[name], files) for name in READERS}
    if (options.data / "kuairand").is_dir():
        found |= {f"kuairand_{name}": _kuairand(options, name) for name in TARGETS}
    if (options.data / "kuairec").is_dir():
        found["kuairec"] = lambda: _kuairec(options.folder("kuairec"))
    return found


def _reader(read: Callable[[Path], Table], folder: Path) -> Callable[[], Table]:
    return lambda: read(folder)


def moved_on(times: IntArray) -> IntArray:
    """Return times that are each `STEP` or more after the one before.

    Examples
    --------
    >>> moved_on(np.array([10, 10, 9, 20])).tolist()
    [10, 12, 14, 20]
    """
    steps = STEP * np.arange(len(times), dtype=np.int64)
    found: IntArray = np.maximum.accumulate(times - steps) + steps
    return found


def _criteo(folder: Path) -> Table:
    counts = [f"i{number}" for number in range(1, 14)]
    kinds = [f"c{number}" for number in range(1, 27)]
    frame = pl.read_csv(
        folder / "criteo.tsv",
        separator="\t",
        has_header=False,
        new_columns=["label", *counts, *kinds],
        infer_schema=False,
    )
    return Table(
        "criteo",
        CLICKED,
        _number(frame["label"]),
        _by_row(frame.height, SECOND),
        {name: _text(frame[name]) for name in kinds},
        numbers={name: _number(frame[name]) for name in counts},
        logarithms=frozenset(counts),
    )


def _avazu(folder: Path) -> Table:
    frame = pl.read_csv(folder / "avazu.csv", infer_schema=False)
    hours = (frame["hour"] + "00").str.to_datetime("%y%m%d%H%M", time_unit="ms").dt.timestamp("ms")
    categories = [name for name in frame.columns if name not in {"id", "click", "hour"}]
    return Table(
        "avazu",
        CLICKED,
        _number(frame["click"]),
        moved_on(hours.to_numpy()),
        {name.lower(): _text(frame[name]) for name in categories},
    )


def _elec2(folder: Path) -> Table:
    names = ["date", "day", "period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer", "class"]
    frame = pl.read_csv(folder / "elec2.csv", has_header=False, new_columns=names, infer_schema=False)
    begin = int(datetime(1996, 5, 7, tzinfo=UTC).timestamp()) * SECOND
    return Table(
        "elec2",
        CLICKED,
        (frame["class"] == "UP").to_numpy().astype(np.float64),
        begin + _by_row(frame.height, HALF_HOUR),
        {"day": _text(frame["day"]), "half_hour": _text(frame["period"])},
        numbers={name: _number(frame[name]) for name in names[2:8]},
        cycles=("hour", "weekday"),
    )


def _bike(folder: Path) -> Table:
    frame = pl.read_csv(folder / "bike_hour.csv", infer_schema=False)
    hours = frame["hr"].cast(pl.Int64) * 2 * HALF_HOUR
    days = frame["dteday"].str.to_datetime("%m/%d/%Y", time_unit="ms").dt.timestamp("ms")
    kinds = ("season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit")
    return Table(
        "bike",
        RegressionSettings(kind="regression", name="hired", offset=200.0, scale=200.0, cap=1000.0),
        _number(frame["cnt"]),
        moved_on((days + hours).to_numpy()),
        {name: _text(frame[name]) for name in kinds},
        numbers={name: _number(frame[name]) for name in ("temp", "atemp", "hum", "windspeed")},
        cycles=("hour", "weekday"),
    )


def _deliveries(folder: Path) -> Table:
    frame = pl.read_csv(folder / "deliveries.txt", infer_schema=False)
    kinds = ("Delivery_person_ID", "Type_of_order", "Type_of_vehicle")
    return Table(
        "deliveries",
        RegressionSettings(kind="regression", name="minutes", offset=30.0, scale=10.0, cap=60.0),
        _number(frame["Time_taken(min)"]),
        _by_row(frame.height, SECOND),
        {name.lower(): _text(frame[name]) for name in kinds},
        numbers={name.lower(): _number(frame[name]) for name in frame.columns[2:8]},
    )


READERS: Final[Mapping[str, Callable[[Path], Table]]] = MappingProxyType(
    {"criteo": _criteo, "avazu": _avazu, "elec2": _elec2, "bike": _bike, "deliveries": _deliveries}
)
"""What reads a file of the folder, by the table's name."""


def _kuairand(options: Options, label: str) -> Callable[[], Table]:
    def read() -> Table:
        frame, _ = rows_by_time(options)
        return Table(
            f"kuairand_{label}",
            CLICKED,
            frame[label].to_numpy().astype(np.float64),
            moved_on(frame["time_ms"].to_numpy()),
            entities={name: _text(frame[name]) for name in ("user_id", "video_id")},
            numbers={"duration_ms": _number(frame["duration_ms"])},
            logarithms=frozenset({"duration_ms"}),
            cycles=("hour",),
            utc_offset="+08:00",
        )

    return read


def _kuairec(folder: Path) -> Table:
    frame = read_events(folder).frame
    return Table(
        "kuairec",
        KUAIREC.target,
        frame["watch_ratio"].to_numpy(),
        moved_on(frame["timestamp"].to_numpy()),
        entities={name: _text(frame[name]) for name in ("user_id", "video_id")},
    )


def _by_row(rows: int, milliseconds: int) -> IntArray:
    return np.arange(rows, dtype=np.int64) * milliseconds


def _number(column: pl.Series) -> FloatArray:
    """Return numbers; NaN where a cell is empty, and an error where it has anything else."""
    stripped = column.cast(pl.String).str.strip_chars().replace("", None)
    found: FloatArray = stripped.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return found


def _text(column: pl.Series) -> list[str]:
    stripped: list[Any] = column.cast(pl.String).str.strip_chars().fill_null("").to_list()
    return [text or NONE for text in stripped]
