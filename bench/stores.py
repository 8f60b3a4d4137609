"""Records of waiting predictions in a plain file, in SQLite and in RocksDB: written and read in batches.

The file is that of a worker, with its index in memory. The databases find a record by the event's id
themselves; they write no log and wait for no disk, since what they hold may be lost. RocksDB needs the
package rocksdict, which is not among those of the project: without it, it is left out.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol

import numpy as np

from bench.options import Options
from pipeline.join.spill import SpilledPredictions
from pipeline.records.encoding import encode
from pipeline.records.output_types import KUAIREC_TYPES
from pipeline.records.outputs import Prediction
from pipeline.worker.spill_file import SpillFile

RECORDS: Final = 1_000_000
BATCH: Final = 5_000
"""Records that are written at once, as by a transaction of a worker."""
RUNS: Final = 3
READ: Final = 100_000
"""Records that are read, in random order."""
READ_BATCH: Final = 500
"""Records that are looked up at once, as for the labels that a worker takes at once."""


class _Store(Protocol):
    """A store of records by the id of their event."""

    def write(self, ids: Sequence[int], texts: Sequence[bytes]) -> None: ...

    def read(self, ids: Sequence[int]) -> None: ...

    def close(self) -> None: ...


class _File:
    """The store of a worker."""

    def __init__(self, folder: Path) -> None:
        self._file = SpillFile(folder)
        self._spilled = SpilledPredictions(self._file, KUAIREC_TYPES.predictions, bytes(16))

    def write(self, ids: Sequence[int], texts: Sequence[bytes]) -> None:
        columns = np.array(ids, dtype=np.int64)
        digests = self._spilled.digester.digests(ids)
        self._spilled.append(digests, texts, timestamps=columns, sequences=columns, versions=columns)

    def read(self, ids: Sequence[int]) -> None:
        assert self._spilled.read(self._spilled.find(self._spilled.digester.digests(ids)))

    def close(self) -> None:
        self._file.close()


class _SQLite:
    """A table with the ids as its key."""

    def __init__(self, folder: Path) -> None:
        self._database = sqlite3.connect(folder / "records.sqlite", isolation_level=None)
        self._database.execute("pragma journal_mode = off")
        self._database.execute("pragma synchronous = off")
        self._database.execute("create table records (id text primary key, value blob) without rowid")

    def write(self, ids: Sequence[int], texts: Sequence[bytes]) -> None:
        self._database.execute("begin")
        self._database.executemany(
            "insert into records values (?, ?)", zip(map(str, ids), texts, strict=True)
        )
        self._database.execute("commit")

    def read(self, ids: Sequence[int]) -> None:
        for event_id in ids:
            [found] = self._database.execute("select value from records where id = ?", (str(event_id),))
            KUAIREC_TYPES.predictions.decode(found[0])

    def close(self) -> None:
        self._database.close()


class _RocksDB:
    """A database whose keys are the ids."""

    def __init__(self, folder: Path) -> None:
        self._rocks: Any = import_module("rocksdict")
        self._database = self._rocks.Rdict(str(folder / "rocks"), self._rocks.Options(raw_mode=True))
        self._options = self._rocks.WriteOptions()
        self._options.disable_wal = True

    def write(self, ids: Sequence[int], texts: Sequence[bytes]) -> None:
        batch = self._rocks.WriteBatch(raw_mode=True)
        for event_id, text in zip(ids, texts, strict=True):
            batch.put(b"%d" % event_id, text)
        self._database.write(batch, self._options)

    def read(self, ids: Sequence[int]) -> None:
        for text in self._database[[b"%d" % event_id for event_id in ids]]:
            KUAIREC_TYPES.predictions.decode(text)

    def close(self) -> None:
        self._database.close()


def run(options: Options) -> dict[str, Any]:
    """Return records written and read in a second by store, and both as shares of the file's."""
    count = options.events or RECORDS
    stores: dict[str, Any] = {"file": _File, "sqlite": _SQLite}
    if find_spec("rocksdict"):
        stores["rocksdb"] = _RocksDB
    else:
        options.say("rocksdict is not installed: RocksDB is left out")
    written: dict[str, list[float]] = {name: [] for name in stores}
    read: dict[str, list[float]] = {name: [] for name in stores}
    with TemporaryDirectory() as folder, closing(_File(Path(folder))) as compiled:
        _rates(compiled, READ_BATCH)
    for _ in range(options.runs or RUNS):
        for name, make in stores.items():
            with TemporaryDirectory() as folder, closing(make(Path(folder))) as store:
                of_write, of_read = _rates(store, count)
            written[name].append(of_write)
            read[name].append(of_read)
            options.say(f"{name}: {of_write:,.0f} written and {of_read:,.0f} read in a second")
    result: dict[str, Any] = {"records": count, "load_average": round(os.getloadavg()[0], 1)}
    for name in stores:
        result[f"{name}_written_per_s"] = round(float(np.median(written[name])))
        result[f"{name}_read_per_s"] = round(float(np.median(read[name])))
    for name in stores:
        result[f"{name}_written_over_file"] = _ratio(written[name], written["file"])
        result[f"{name}_read_over_file"] = _ratio(read[name], read["file"])
    return result


def _rates(store: _Store, count: int) -> tuple[float, float]:
    """Return the records written and read in a second."""
    seconds = 0.0
    for ids, texts in _batches(count):
        begin = time.perf_counter()
        store.write(ids, texts)
        seconds += time.perf_counter() - begin
    chosen = np.random.default_rng(1).integers(0, count, min(READ, count)).tolist()
    begin = time.perf_counter()
    for first in range(0, len(chosen), READ_BATCH):
        store.read(chosen[first : first + READ_BATCH])
    return count / seconds, len(chosen) / (time.perf_counter() - begin)


def _batches(count: int) -> Iterator[tuple[list[int], list[bytes]]]:
    """Yield ids and records, whose features have as many digits as those of a worker."""
    chance = np.random.default_rng(0)
    for begin in range(0, count, BATCH):
        ids = [*range(begin, min(begin + BATCH, count))]
        features = chance.normal(size=(len(ids), 10)).round(6).tolist()
        yield (
            ids,
            [
                encode(
                    Prediction(each, each % 997, each % 4999, each, 0.123456789, 0.53, True, row, each, each)
                )
                for each, row in zip(ids, features, strict=True)
            ],
        )


def _ratio(rates: list[float], others: list[float]) -> float:
    """Return the median ratio of runs side by side."""
    return round(float(np.median(np.divide(rates, others))), 2)
