"""Read examples from a NumPy .npz file: dense, or sparse by rows.

NumPy reads headers and arrays, without pickles. The headers of all arrays are checked before any array is
read, as `np.load` and `scipy.sparse.load_npz` allocate what a header claims. Arrays that are not needed are
not read.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import Any, Final, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile
from zlib import error as ZlibError  # noqa: N812 - it is a class

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pipeline.errors import DataError
from pipeline.input_files import LARGEST_TABLE
from pipeline.tools.evaluate.dataset import Dataset, check_shape, checked_dataset
from pipeline.truncate import truncate

SPARSE: Final = ("data", "indices", "indptr", "shape")
"""Names of the arrays of a matrix in compressed sparse row format, as in `scipy.sparse`."""
SUFFIX: Final = ".npy"
NO_ARCHIVE: Final = "cannot be read as an .npz of plain arrays"
LARGEST_READ: Final = 2**22
"""Bytes that are read from the archive at once, at most: more only if its table of contents is damaged."""
LARGEST_HEADER: Final = 2**16
"""Bytes of an array's header, at most."""
UNREADABLE: Final = (
    BadZipFile,
    ZlibError,
    OSError,
    EOFError,
    RuntimeError,  # of an encrypted member
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    SyntaxError,
    TokenError,
    struct.error,
)
"""What the standard library and NumPy raise for a damaged archive."""


class Header(NamedTuple):
    """The shape and type of an array of the archive."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def is_array(self, dimensions: int, kinds: str) -> bool:
        """Return whether it has so many dimensions, and one of some kinds of numbers."""
        return len(self.shape) == dimensions and self.dtype.kind in kinds


def read_arrays(file: Path) -> Dataset:
    """Read the arrays `X` and `y`, or the arrays of a sparse `X` and `y`.

    Parameters
    ----------
    file
        File with `X` of shape (n, d) and `y` of shape (n,).

    Returns
    -------
    Dataset
        Checked rows and labels.

    Raises
    ------
    DataError
        If an array is missing or does not fit; the error names it.
    """
    with _opened(file) as archive:
        names = [name.removesuffix(SUFFIX) for name in archive.namelist() if name.endswith(SUFFIX)]
        if "X" not in names and not set(SPARSE) <= set(names):
            found = truncate(", ".join(names)) or "no array"
            raise DataError(
                f"{file}: expected are the arrays X and y, or {', '.join(SPARSE)} and y; found: {found}"
            )
        if "y" not in names:
            raise DataError(f"{file}: there are no labels: the array y is missing")
        labels = _header(file, archive, "y", 1, "biuf")
        X = _dense(file, archive, labels) if "X" in names else _sparse(file, archive, labels)
        y = _array(file, archive, "y")
    return checked_dataset(X, y, lambda row: f"{file}, row {row} from 0")


class _BoundedReader(io.BufferedReader):
    """A file that is never read whole, whatever sizes it claims to have inside."""

    def read(self, size: int | None = -1, /) -> bytes:
        content = super().read(LARGEST_READ + 1 if size is None or size < 0 else min(size, LARGEST_READ + 1))
        if len(content) > LARGEST_READ:
            raise BadZipFile("its table of contents is too large")
        return content


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Raise `DataError` for what the standard library and NumPy raise."""
    try:
        yield
    except UNREADABLE as error:
        reason = truncate(str(error)) or type(error).__name__
        if isinstance(error, TokenError | SyntaxError):  # in words that each Python has of its own
            reason = "its header is not that of an array"
        raise DataError(f"{what}: {reason}") from error


@contextmanager
def _opened(file: Path) -> Iterator[ZipFile]:
    """Open an archive; errors while it is read name the file."""
    with (
        _explained(f"{file}: {NO_ARCHIVE}"),
        _BoundedReader(io.FileIO(file)) as content,
        ZipFile(content) as archive,
    ):
        yield archive


def _header(file: Path, archive: ZipFile, name: str, dimensions: int, kinds: str) -> Header:
    """Read the header of an array, and check it against what is needed and against the archive."""
    found, size = _read_header(file, archive, name)
    if not found.is_array(dimensions, kinds):
        raise DataError(
            f"{file}: {name} has to be an array of {dimensions} dimension(s) and of "
            f"{'real numbers' if 'f' in kinds else 'integers'}, "
            f"not of shape {truncate(str(found.shape))} and type {truncate(str(found.dtype))}"
        )
    needed = prod(found.shape) * found.dtype.itemsize
    if needed != size:
        raise DataError(f"{file}: {name} is damaged: its shape needs {needed:,} bytes, it has {size:,}")
    if needed > LARGEST_TABLE:
        raise DataError(
            f"{file}: {name} takes {needed / 1e9:,.1f} GB; the limit is {LARGEST_TABLE / 1e9:g} GB"
        )
    return found


def _read_header(file: Path, archive: ZipFile, name: str) -> tuple[Header, int]:
    """Return the header of an array, and the bytes that follow it."""
    with _explained(f"{file}: {NO_ARCHIVE}: the array {name}"):
        member = archive.getinfo(name + SUFFIX)
        if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):  # others expand without a bound
            raise BadZipFile("it is not compressed as NumPy does")
        with archive.open(name + SUFFIX) as content:
            begin = io.BytesIO(content.read(LARGEST_HEADER))
        version = npy.read_magic(begin)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(begin)
    return Header(shape, dtype), member.file_size - begin.tell()


def _array(file: Path, archive: ZipFile, name: str) -> NDArray[Any]:
    """Read an array whose header was checked."""
    with _explained(f"{file}: the array {name} is damaged"), archive.open(name + SUFFIX) as content:
        array: NDArray[Any] = npy.read_array(content, allow_pickle=False)
    return array


def _dense(file: Path, archive: ZipFile, labels: Header) -> NDArray[Any]:
    rows, columns = _header(file, archive, "X", 2, "biuf").shape
    _check_rows(file, rows, labels)
    check_shape(file, rows, columns)
    return _array(file, archive, "X")


def _sparse(file: Path, archive: ZipFile, labels: Header) -> NDArray[Any]:
    headers = {"data": "biuf", "indices": "iu", "indptr": "iu", "shape": "iu"}
    shapes = {name: _header(file, archive, name, 1, kinds).shape for name, kinds in headers.items()}
    if shapes["shape"] != (2,):
        raise DataError(f"{file}: shape has {shapes['shape'][0]:,} numbers; a table has 2: rows and columns")
    rows, columns = (int(size) for size in _array(file, archive, "shape"))
    _check_rows(file, rows, labels)
    check_shape(file, rows, columns)
    data, indices, indptr = (_array(file, archive, name) for name in SPARSE[:3])
    with _explained(f"{file}: {', '.join(SPARSE)} do not form a matrix in compressed sparse row format"):
        sparse = csr_array((data.astype(np.float64), indices, indptr), shape=(rows, columns))
        sparse.check_format(full_check=True)
    return sparse.toarray()


def _check_rows(file: Path, rows: int, labels: Header) -> None:
    if rows != labels.shape[0]:
        raise DataError(f"{file}: X has {rows:,} rows, but y has {labels.shape[0]:,} labels")
