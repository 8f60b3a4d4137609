"""Predictions that wait for their label outside of memory: their records are in a file, an index in memory.

In memory, a waiting prediction and its record take some 430 bytes; here it takes some 80 bytes of memory. So
the newest stay in memory (`pipeline.join.tables`), and older ones are moved here, many at once. The file is
not kept: a restart makes another one from the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec
import numpy as np

from pipeline.errors import StateError
from pipeline.join.digest_index import EMPTY, DigestIndex, Rows
from pipeline.join.digests import Digester, Digests
from pipeline.join.spill_columns import Integers, SpillColumns
from pipeline.records.outputs import Prediction

BLOCK_ROWS: Final = 2**15
"""Predictions whose room is used again when the last of them is closed."""
BLOCK_BYTES: Final = 2**24
"""Bytes of their records, at most: half a kilobyte each. The largest record has a mebibyte."""


class RecordStore(Protocol):
    """Bytes at places, which need not outlast the process."""

    def write(self, at: int, data: bytes) -> None:
        """Write bytes at a place."""

    def read(self, at: int, size: int) -> bytes:
        """Return bytes that were written."""

    def truncate(self, size: int) -> None:
        """Forget what stands from a place on."""


class SpilledPredictions:
    """Records of waiting predictions in a store, found by event, by deadline and by sequence.

    Records are written into blocks. When the last prediction of a block is closed, its place is used again.
    `compact` moves what is left of blocks of which most is closed. So the store has at most about twice the
    bytes of the most predictions that ever waited in it.

    Parameters
    ----------
    store
        Keeps the records. It is empty.
    decoder
        Decodes records.
    key
        Secret key of the digests of event ids: see `pipeline.join.digests.Digester`.
    rows, size
        Predictions of a block, and the bytes of their records.
    """

    def __init__(
        self,
        store: RecordStore,
        decoder: msgspec.json.Decoder[Prediction],
        key: bytes,
        *,
        rows: int = BLOCK_ROWS,
        size: int = BLOCK_BYTES,
    ) -> None:
        self._store = store
        self._decoder = decoder
        self.digester = Digester(key)
        """Makes the digests of event ids."""
        self._index = DigestIndex()
        self._columns = SpillColumns(rows, size)
        self._block: int | None = None
        """The block that is being filled."""

    def __len__(self) -> int:
        return len(self._index)

    @property
    def first(self) -> int:
        """The earliest timestamp, `NEVER` if there is none."""
        return self._columns.first

    @property
    def lowest(self) -> tuple[int, int]:
        """The lowest sequence, of at least one, and the `model_version` of that prediction."""
        row = self._columns.lowest
        return int(self._columns.sequences[row]), int(self._columns.versions[row])

    def append(
        self,
        digests: Digests,
        texts: Sequence[bytes],
        *,
        timestamps: Integers,
        sequences: Integers,
        versions: Integers,
    ) -> None:
        """Add predictions of other events.

        Parameters
        ----------
        digests
            Digests of their events, shape (n, 2).
        texts
            Their records.
        timestamps, sequences, versions
            As in the records. Sequences ascend, also from one call to the next.
        """
        columns = {"timestamps": timestamps, "sequences": sequences, "versions": versions}
        self._append(digests, texts, columns)

    def find(self, digests: Digests) -> Rows:
        """Return the rows of events, given their digests; -1 where there is none."""
        return self._index.find(self._columns.digests, digests)

    def first_rows(self, time: int, most: int) -> Rows:
        """Return the rows of predictions made before a time, by timestamp and sequence, at most so many."""
        return self._columns.first_rows(time, most)

    def timestamps(self, rows: Rows) -> Integers:
        """Return the timestamps of rows."""
        timestamps: Integers = self._columns.timestamps[rows]
        return timestamps

    def sequences(self, rows: Rows) -> Integers:
        """Return the sequences of rows."""
        sequences: Integers = self._columns.sequences[rows]
        return sequences

    def digests(self, rows: Rows) -> Digests:
        """Return the digests of the events of rows, shape (n, 2)."""
        return self._columns.digests[rows]

    def read(self, rows: Rows) -> list[Prediction]:
        """Return the predictions of rows."""
        return list(map(self._read, rows.tolist()))

    def remove(self, rows: Rows) -> None:
        """Remove the predictions of rows."""
        assert (rows != EMPTY).all(), "a prediction has two outcomes"
        self._remove(rows)

    def compact(self) -> None:
        """Move what is left of the emptiest blocks, if most of the predictions here are closed."""
        columns = self._columns
        if columns.dead <= len(columns) + columns.rows:
            return
        rows = columns.sparse(but=self._block)
        if not len(rows):
            return
        digests = columns.digests[rows]
        copied = {
            "timestamps": columns.timestamps[rows],
            "sequences": columns.sequences[rows],
            "versions": columns.versions[rows],
        }
        texts = list(map(self._text, rows.tolist()))
        self._remove(rows)
        block, self._block = self._block, None  # which has later sequences
        self._append(digests, texts, copied)
        self._block = block

    def _append(self, digests: Digests, texts: Sequence[bytes], columns: dict[str, Integers]) -> None:
        added, begin = self._columns, 0
        sizes = np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)))
        while begin < len(texts):
            if self._block is None:
                self._block = added.begin()
            used, size = added.room(self._block)
            before = int(sizes[begin - 1]) if begin else 0
            fitting = int(np.searchsorted(sizes, before + added.size - size, side="right"))
            end = min(len(texts), fitting, begin + added.rows - used)
            if end == begin:
                assert used, "a record is larger than a block"
                self._block = None
                continue
            self._store.write(self._block * added.size + size, b"".join(texts[begin:end]))
            rows = added.append(
                self._block,
                digests[begin:end],
                ends=sizes[begin:end] - before + size,
                **{name: column[begin:end] for name, column in columns.items()},
            )
            self._index.insert(added.digests, rows)
            begin = end

    def _remove(self, rows: Rows) -> None:
        self._index.remove(self._columns.digests, rows)
        empty = self._columns.remove(rows)
        for block in empty:
            self._columns.free(block)
            if block == self._block:
                self._block = None
        if empty:
            self._store.truncate(self._columns.blocks * self._columns.size)

    def _text(self, row: int) -> bytes:
        columns, (block, number) = self._columns, divmod(row, self._columns.rows)
        begin = int(columns.ends[row - 1]) if number else 0
        return self._store.read(block * columns.size + begin, int(columns.ends[row]) - begin)

    def _read(self, row: int) -> Prediction:
        text = self._text(row)
        try:
            return self._decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            sequence = self._columns.sequences[row]
            raise StateError(
                f"no worker wrote prediction {sequence}, {text!r:.80}: {error}. Something else writes to its "
                "topic, or to the file in join.spill_folder"
            ) from error
