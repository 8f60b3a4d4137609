"""Bounds for files of unknown content, so that none takes more memory than what is made of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

from pipeline.errors import DataError

LARGEST_TABLE: Final = 2 * 10**9
"""Bytes of a dense table, at most: a larger one is more likely due to a wrong index than to data."""
LARGEST_TEXT: Final = 4 * 10**9
"""Bytes of a file of text that is read whole, at most."""
LONGEST_LINE: Final = 2**24
"""Characters of a line of text, at most."""


def refuse_large(file: Path, largest: int = LARGEST_TEXT) -> None:
    """Raise an error for a file that is too large to be read whole.

    Parameters
    ----------
    file
        File to be read.
    largest
        Bytes that it may have.

    Raises
    ------
    DataError
        The file has more, or its size is not known.
    """
    try:
        size = file.stat().st_size
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from error
    if size > largest:
        raise DataError(f"{file}: {size / 1e9:,.1f} GB are too large; the limit is {largest / 1e9:g} GB")


def refuse_large_table(what: str, rows: int, columns: int) -> None:
    """Raise an error for a table that would be too large as a dense one.

    Parameters
    ----------
    what
        What names the file, for the error.
    rows, columns
        Shape of the table.

    Raises
    ------
    DataError
        The table takes more than `LARGEST_TABLE`.
    """
    size = rows * columns * 8
    if size > LARGEST_TABLE:
        raise DataError(
            f"{what}: {rows:,} rows of {columns:,} features take {size / 1e9:,.1f} GB as a dense table; "
            f"the limit is {LARGEST_TABLE / 1e9:g} GB"
        )


def bounded_lines(file: Path, text: TextIO) -> Iterator[str]:
    """Yield the lines of a text.

    Parameters
    ----------
    file
        Path of the text, for the error.
    text
        Text to read.

    Raises
    ------
    DataError
        A line has more than `LONGEST_LINE` characters.
    """
    number = 0
    while line := text.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise DataError(f"{file}, line {number}: the line has more than {LONGEST_LINE:,} characters")
        yield line
