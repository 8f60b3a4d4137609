"""A folder of Parquet files, and the manifest that says which of them count and where to go on.

Files are written beside the others first, in a folder of their own. Then the manifest that names them and
the next offset replaces the one before: from that moment on they count. Then they move to their places. What
a crash leaves undone of this is done when the folder is opened again, and files that no manifest names are
removed. So each record is in one file that counts, or in none yet.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec
import polars as pl

from pipeline.errors import ConfigError, StateError, StorageError
from pipeline.records.fields import Count

MANIFEST: Final = "_manifest.json"
INCOMPLETE: Final = "_incomplete"
"""The folder of files that are not at their places yet. Readers leave out names that begin so, or look for
names that end with `.parquet`."""
LOCK: Final = "lock"
"""The file in it that the process locks which has the folder."""
FORMAT: Final = 1
"""The version of the manifest."""


class ExportedFile(msgspec.Struct, frozen=True):
    """A file of an export."""

    path: str
    """Where it is in the folder."""
    records: Count
    first_offset: Count
    last_offset: Count
    bytes: Count


class ExportedPartition(msgspec.Struct, frozen=True):
    """What was exported of a partition."""

    next_offset: Count = 0
    """Where the export goes on."""
    records: Count = 0
    deleted_offsets: Count = 0
    """Offsets that retention deleted before they were exported."""
    files: tuple[ExportedFile, ...] = ()


class Manifest(msgspec.Struct, frozen=True):
    """What was exported."""

    topic: str
    columns: dict[str, str]
    """Their types by name."""
    partitions: dict[str, ExportedPartition] = {}
    format: int = FORMAT


class ExportFolder:
    """A folder of Parquet files that is open for one process: see `pipeline.broker.folder_lock`.

    Parameters
    ----------
    path
        The folder, which exists.
    topic
        The topic that is exported.
    columns
        The types of the columns, by name.

    Raises
    ------
    ConfigError
        The folder has an export of another topic or with other columns, or other files.
    StateError
        The manifest is damaged.
    StorageError
        From any method: the folder cannot be written, or its disk is full.
    """

    def __init__(self, path: Path, topic: str, columns: Mapping[str, object]) -> None:
        self.path = path
        wanted = {name: str(kind) for name, kind in columns.items()}
        self.manifest = self._read(Manifest(topic, wanted))
        if self.manifest.topic != topic:
            raise ConfigError(
                f"{path} has an export of {self.manifest.topic}, not of {topic}: name another folder"
            )
        if self.manifest.columns != wanted:
            changed = sorted({name for name, _ in set(wanted.items()) ^ set(self.manifest.columns.items())})
            raise ConfigError(
                f"{path} has an export with other columns ({', '.join(changed)}), made with another "
                "configuration: name another folder, or the configuration with --config"
            )
        self._guarded(self._finish)

    def partition(self, number: int) -> ExportedPartition:
        """Return what was exported of a partition."""
        return self.manifest.partitions.get(str(number), ExportedPartition())

    def append(
        self, number: int, days: Mapping[str, pl.DataFrame], next_offset: int, deleted: int = 0
    ) -> None:
        """Add records of a partition.

        Parameters
        ----------
        number
            The partition.
        days
            Its records by day, with the column `offset`.
        next_offset
            The offset behind them.
        deleted
            Offsets before them that were deleted before they were exported.
        """
        self._guarded(lambda: self._append(number, days, next_offset, deleted))

    def _append(self, number: int, days: Mapping[str, pl.DataFrame], next_offset: int, deleted: int) -> None:
        before, new = self.partition(number), list[ExportedFile]()
        for day, frame in days.items():
            first, last = frame["offset"][0], frame["offset"][-1]
            name = f"day={day}/partition={number}/{first:020}.parquet"
            file = self._incomplete(name)
            frame.write_parquet(file, compression="zstd")
            _sync(file)
            new.append(ExportedFile(name, len(frame), first, last, file.stat().st_size))
        partition = ExportedPartition(
            next_offset,
            before.records + sum(file.records for file in new),
            before.deleted_offsets + deleted,
            (*before.files, *new),
        )
        partitions = self.manifest.partitions | {str(number): partition}
        manifest = msgspec.structs.replace(self.manifest, partitions=partitions)
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        written = self.path / f"{MANIFEST}.new"
        written.write_bytes(text)
        _sync(written)
        written.replace(self.path / MANIFEST)
        _sync(self.path)
        self.manifest = manifest
        for each in new:
            self._place(each.path)

    def _finish(self) -> None:
        """Do what a crash has left undone."""
        folder = self.path / INCOMPLETE
        folder.mkdir(exist_ok=True)
        named = {
            self._incomplete(file.path): file.path
            for partition in self.manifest.partitions.values()
            for file in partition.files
        }
        for file in folder.iterdir():
            if file in named:
                self._place(named[file])
            elif file.name != LOCK:
                file.unlink()

    def _place(self, name: str) -> None:
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        self._incomplete(name).replace(target)

    def _incomplete(self, name: str) -> Path:
        return self.path / INCOMPLETE / f"{name.replace('/', '~')}.new"

    def _read(self, empty: Manifest) -> Manifest:
        file = self.path / MANIFEST
        try:
            text = file.read_bytes()
        except FileNotFoundError:
            if next(self.path.glob("day=*"), None) is not None:
                raise ConfigError(
                    f"{self.path} has exported days, but no {MANIFEST}: name another folder"
                ) from None
            return empty
        except OSError as error:
            raise StorageError(f"{file} cannot be read: {error.strerror}") from error
        try:
            manifest = msgspec.json.decode(text, type=Manifest)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise StateError(f"{file} is damaged ({error}): export to another folder") from error
        if manifest.format != FORMAT:
            raise StateError(
                f"{file} has format {manifest.format}, this version of forks knows {FORMAT}: use the one "
                "that wrote it, or export to another folder"
            )
        return manifest

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            raise StorageError(
                f"{self.path} cannot be written: {error.strerror or error}. Make room, or name another "
                "folder, then run this again: it continues"
            ) from error


def _sync(path: Path) -> None:
    """Let the system write a file or a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
