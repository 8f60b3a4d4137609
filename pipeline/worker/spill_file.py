"""The file of a partition's spilled predictions: without a name, so it is gone with its process."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from pipeline.errors import StorageError


class SpillFile:
    """A `pipeline.join.spill.RecordStore` in a temporary file, which is made when something is written.

    Parameters
    ----------
    folder
        Where the file is; None for the system's folder for temporary files.

    Raises
    ------
    StorageError
        From any method: the folder cannot be written, or its disk is full.

    Examples
    --------
    >>> store = SpillFile()
    >>> store.write(2, b"abc")
    >>> store.read(3, 2)
    b'bc'
    >>> store.close()
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None

    def open(self) -> int:
        """Make the file, unless it is there; return its descriptor."""
        if self._file is None:
            try:
                self._file = TemporaryFile(buffering=0, dir=self._folder)  # noqa: SIM115 - closed by `close`
            except OSError as error:
                raise self._failed("cannot be written", error) from error
        return self._file.fileno()

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def write(self, at: int, data: bytes) -> None:
        """Write bytes at a place."""
        left, descriptor = memoryview(data), self.open()
        try:
            while left:  # a disk that is nearly full takes a part
                written = os.pwrite(descriptor, left, at)
                left, at = left[written:], at + written
        except OSError as error:
            raise self._failed("has no room for it", error) from error

    def read(self, at: int, size: int) -> bytes:
        """Return bytes that were written."""
        try:
            return os.pread(self.open(), size, at)
        except OSError as error:
            raise self._failed("cannot be read", error) from error

    def truncate(self, size: int) -> None:
        """Forget what stands from a place on."""
        try:
            if size < os.fstat(self.open()).st_size:
                os.truncate(self.open(), size)
        except OSError as error:
            raise self._failed("cannot be written", error) from error

    def _failed(self, what: str, error: OSError) -> StorageError:
        return StorageError(
            f"{self._folder or 'the folder for temporary files'} {what}: {error.strerror}. Predictions that "
            "wait for their label are in a file there. Name another folder in join.spill_folder, or raise "
            "join.max_in_memory"
        )


def refuse_unwritable(folder: Path) -> None:
    """Refuse a folder in which no file can be made.

    Raises
    ------
    StorageError
        The folder cannot be written.
    """
    store = SpillFile(folder)
    store.open()
    store.close()
