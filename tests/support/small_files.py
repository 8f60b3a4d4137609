"""Small files as people have them, right and wrong, for what reads tables of a stream's events."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import random
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import polars as pl

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

EVENTS = 60
BEGIN = datetime(2025, 3, 1, 0, 6, tzinfo=UTC)
TIMES = [BEGIN + number * timedelta(hours=7) for number in range(EVENTS)]

Row = dict[str, Any]


class SmallFile(NamedTuple):
    """A file, and what is said beside it."""

    kind: str
    name: str
    content: bytes | None
    """None for a file that is not there."""
    options: tuple[str, ...] = ()
    """Options of `forks stream init`."""


def rows(change: Callable[[int], Row] = lambda _: {}) -> list[Row]:
    """Return events of a shop; a function of their numbers says what else each has."""
    chance = random.Random(7)
    found = []
    for number, time in enumerate(TIMES):
        price = round(chance.uniform(1, 90), 2)
        row = {
            "user_id": f"u{chance.randrange(7)}",
            "item_id": chance.randrange(100, 109),
            "time": int(time.timestamp() * 1000),
            "price": price,
            "bought": int(chance.random() < 0.2 + price / 150),
        }
        found.append(row | change(number))
    return found


def text(
    table: Sequence[Row], separator: str = ",", *, names: bool = True, quote: bool = False, end: str = "\n"
) -> str:
    """Return a table as text."""
    lines = [list(table[0])] if names else []
    lines += [["" if value is None else value for value in row.values()] for row in table]
    if len(separator) > 1:
        return "".join(separator.join(map(str, line)) + end for line in lines)
    file = io.StringIO(newline="")
    writer = csv.writer(
        file,
        delimiter=separator,
        lineterminator=end,
        quoting=csv.QUOTE_ALL if quote else csv.QUOTE_MINIMAL,
    )
    writer.writerows(lines)
    return file.getvalue()


def objects(table: Sequence[Row]) -> bytes:
    """Return a table as one JSON object a line."""
    return "".join(json.dumps(row) + "\n" for row in table).encode()


def parquet(frame: pl.DataFrame) -> bytes:
    """Return a table as Parquet."""
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


def timed(kind: str, write: Callable[[datetime], object], *options: str) -> SmallFile:
    """Return a file whose times are written so."""
    return SmallFile(kind, "shop.csv", text(rows(lambda n: {"time": write(TIMES[n])})).encode(), options)


def labelled(kind: str, label: Callable[[int, int], Row], *options: str) -> SmallFile:
    """Return a file with other labels: a function of an event's number and of its usual label."""
    table = [row | label(number, row.pop("bought")) for number, row in enumerate(rows())]
    return SmallFile(kind, "shop.csv", text(table).encode(), options)


def changed(kind: str, change: Callable[[int], Row]) -> SmallFile:
    """Return a file whose rows have something else."""
    return SmallFile(kind, "shop.csv", text(rows(change)).encode())


def shapes() -> Iterator[SmallFile]:
    """Yield the same table in files of all shapes."""
    plain = text(rows())
    for kind, separator, name in (
        ("commas", ",", "shop.csv"),
        ("tabs", "\t", "shop.tsv"),
        ("semicolons", ";", "shop.csv"),
        ("pipes", "|", "shop.txt"),
        ("double colons", "::", "shop.data"),
    ):
        yield SmallFile(kind, name, text(rows(), separator).encode())
    yield SmallFile("no names", "shop.csv", text(rows(), names=False).encode())
    yield SmallFile("no names, double colons", "shop.dat.txt", text(rows(), "::", names=False).encode())
    noted = rows(lambda n: {"note": 'said "no",\nthen left' if n % 3 else "came in, bought"})
    yield SmallFile("quotes", "shop.csv", text(noted, quote=True).encode())
    yield SmallFile("byte order mark", "shop.csv", codecs.BOM_UTF8 + plain.encode())
    latin = rows(lambda n: {"city": "M\xfcnchen" if n % 2 else "K\xf6ln"})
    yield SmallFile("Latin-1", "shop.csv", text(latin).encode("latin-1"))
    yield SmallFile("Windows' ends of lines", "shop.csv", text(rows(), end="\r\n").encode())
    blanks = text(rows(), " , ").replace(" , ", " ,  ")
    yield SmallFile("blanks around values", "shop.csv", blanks.encode())
    comma = rows(lambda n: {"price": f"{n},{n % 9}"})
    yield SmallFile("decimal commas", "shop.csv", text(comma, ";").encode())
    yield SmallFile("gzip", "shop.csv.gz", gzip.compress(plain.encode(), mtime=0))
    yield SmallFile("zstd", "shop.tsv.zst", zstd.compress(text(rows(), "\t").encode()))
    yield SmallFile("lines of JSON", "shop.jsonl", objects(rows()))
    yield SmallFile("lines of JSON, gzip", "shop.ndjson.gz", gzip.compress(objects(rows()), mtime=0))
    yield SmallFile("a list of JSON", "shop.json", json.dumps(rows()).encode())
    nested = [{"user": {"id": each.pop("user_id")}} | each for each in rows()]
    yield SmallFile("objects in JSON", "shop.jsonl", objects(nested))
    yield SmallFile("Parquet", "shop.parquet", parquet(pl.DataFrame(rows())))
    ragged = plain.splitlines()
    ragged[5] += ",more"
    yield SmallFile("a ragged line", "shop.csv", "\n".join(ragged).encode())
    half = [line if number % 2 else f"{line},more" for number, line in enumerate(plain.splitlines())]
    yield SmallFile("half of the lines ragged", "shop.csv", "\n".join(half[1:]).encode())


def broken() -> Iterator[SmallFile]:
    """Yield files that are no tables."""
    plain = text(rows()).encode()
    yield SmallFile("no file", "shop.csv", None)
    yield SmallFile("nothing in it", "shop.csv", b"")
    yield SmallFile("blank lines alone", "shop.csv", b"\n\n\n")
    yield SmallFile("names alone", "shop.csv", plain.splitlines()[0])
    yield SmallFile("zero bytes", "shop.csv", b"\x00\x01\x02" * 500)
    yield SmallFile("UTF-16", "shop.csv", text(rows()).encode("utf-16"))
    yield SmallFile("cut gzip", "shop.csv.gz", gzip.compress(plain, mtime=0)[:-20])
    yield SmallFile("cut zstd", "shop.csv.zst", zstd.compress(plain)[:-20])
    yield SmallFile("cut Parquet", "shop.parquet", parquet(pl.DataFrame(rows()))[:-20])
    yield SmallFile("cut JSON", "shop.json", json.dumps(rows()).encode()[:-20])
    yield SmallFile("another ending", "shop.xlsx", plain)
    yield SmallFile("one column", "shop.csv", b"bought\n" + b"0\n1\n" * 30)
    yield SmallFile("one row", "shop.csv", b"\n".join(plain.splitlines()[:2]))


def times() -> Iterator[SmallFile]:
    """Yield files whose times are written in all ways."""
    yield timed("seconds", lambda time: int(time.timestamp()))
    yield timed("seconds with a fraction", lambda time: time.timestamp() + 0.25)
    yield timed("microseconds", lambda time: int(time.timestamp()) * 1_000_000)
    yield timed("nanoseconds", lambda time: int(time.timestamp()) * 1_000_000_000)
    yield timed("ISO 8601", lambda time: time.isoformat())
    yield timed("ISO 8601 without a zone", lambda time: f"{time:%Y-%m-%d %H:%M}")
    yield timed("ISO 8601, compact", lambda time: f"{time:%Y%m%dT%H%M%SZ}")
    yield timed("month first", lambda time: f"{time.month}/{time.day}/{time.year} {time:%H:%M}")
    yield timed("day first", lambda time: f"{time:%d/%m/%Y %H:%M}")
    yield timed("AM and PM", lambda time: f"{time:%m/%d/%Y %I:%M %p}")
    yield timed("dots", lambda time: f"{time:%d.%m.%Y %H:%M}")
    yield timed("names of months", lambda time: f"{time:%d-%b-%Y %H:%M:%S}")
    yield timed("digits", lambda time: f"{time:%Y%m%d%H%M}")
    yield timed("digits to the hour", lambda time: f"{time:%y%m%d%H}")
    table = rows(lambda n: {"time": f"{TIMES[n]:%m/%d/%Y}"})
    hours = [row | {"hour": TIMES[number].hour} for number, row in enumerate(table)]
    yield SmallFile("a day and an hour", "shop.csv", text(hours).encode())
    undecided = rows(lambda n: {"time": f"{n // 6 + 1:02}/{n // 6 + 1:02}/2025"})
    yield SmallFile("day or month first", "shop.csv", text(undecided).encode())
    said = ("--time-format", "%d/%m/%Y", "--time", "time")
    yield SmallFile("day first, as is said", "shop.csv", text(undecided).encode(), said)
    none = [{name: value for name, value in row.items() if name != "time"} for row in rows()]
    yield SmallFile("no time", "shop.csv", text(none).encode())
    yield changed("the same day in many rows", lambda n: {"time": f"{TIMES[n // 20]:%Y-%m-%d}"})
    yield changed("two bad times", lambda n: {"time": "soon" if n in {20, 40} else f"{TIMES[n].isoformat()}"})
    naive = pl.DataFrame(rows(lambda n: {"time": TIMES[n].replace(tzinfo=None)}))
    yield SmallFile("Parquet without a zone", "shop.parquet", parquet(naive))


def labels() -> Iterator[SmallFile]:
    """Yield files with labels of all kinds."""
    yield labelled("yes and no", lambda _, y: {"bought": "yes" if y else "no"})
    yield labelled("UP and DOWN, last, unnamed", lambda _, y: {"x": "UP" if y else "DOWN"})
    yield labelled("-1 and 1", lambda _, y: {"y": 2 * y - 1})
    yield labelled("1 and 2", lambda _, y: {"class": y + 1})
    yield labelled("true and false", lambda _, y: {"label": "true" if y else "false"})
    yield labelled("numbers of many values", lambda n, y: {"minutes": 5 + n % 17 + 9 * y})
    yield labelled("ratings", lambda n, y: {"rating": (n % 7) / 2 + y})
    yield labelled("one value", lambda *_: {"bought": 0})
    yield labelled("three texts", lambda n, _: {"bought": ("a", "b", "c")[n % 3]}, "--label", "bought")
    yield labelled("half of them missing", lambda n, y: {"bought": y if n % 2 else None})
    yield labelled("all of them missing", lambda *_: {"bought": None}, "--label", "bought")
    yield labelled("some are no numbers", lambda n, y: {"bought": "?!" if n == 9 else y}, "--label", "bought")
    parts = lambda n, y: {"casual": n % 5, "registered": 3 * y + n % 7, "cnt": n % 5 + 3 * y + n % 7}  # noqa: E731 - short
    yield labelled("a sum of two columns", parts)
    yield labelled("known later", lambda n, y: {"bought": y, "label_time": rows()[n]["time"] + 5_000})
    yield labelled("known before", lambda n, y: {"bought": y, "label_time": rows()[n]["time"] - 5_000})
    yield labelled("another name", lambda _, y: {"z": y, "other": 1}, "--label", "nothing")


def values() -> Iterator[SmallFile]:
    """Yield files with ids and values that are not as usual."""
    yield changed("words for nothing", lambda n: {"price": ("NA", "null", "None", "-", "", 3.5)[n % 6]})
    yield changed("ids beyond 64 bits", lambda n: {"user_id": 2**63 + n % 5})
    yield changed("ids with a fraction of 0", lambda n: {"item_id": "" if n == 3 else f"{n % 5}.0"})
    chance = random.Random(1)
    some = [uuid.UUID(int=chance.getrandbits(128)) for _ in range(5)]
    yield changed("UUIDs", lambda n: {"user_id": some[n % 5]})
    flags = rows(lambda n: {"user_id": n % 2 == 0})
    yield SmallFile("booleans as ids", "shop.jsonl", objects(flags), ("--entity", "user_id"))
    yield changed("an id twice", lambda n: {"event_id": f"e{n // 2 if n < 4 else n}"})
    doubled = text(rows(lambda n: {"key": n // 2})).encode()
    yield SmallFile("an id twice, as is said", "shop.csv", doubled, ("--event-id", "key"))
    yield changed("names of outputs", lambda n: {"score": n % 5, "features": "a" if n % 2 else "b"})
    yield changed("long texts", lambda n: {"words": " ".join(["word"] * (3 + n % 40))})
    yield changed("infinite numbers", lambda n: {"price": ("inf", "nan", 1e308, -1e308, 2.0)[n % 5]})


def small_files() -> list[SmallFile]:
    """Return all of them."""
    return [*shapes(), *broken(), *times(), *labels(), *values()]
