"""Read examples from a CSV file: a line of names, then one line of numbers for each example."""

from __future__ import annotations

import csv
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl

from pipeline.errors import ConfigError, DataError
from pipeline.input_files import LARGEST_TABLE, bounded_lines, refuse_large, refuse_large_table
from pipeline.tools.evaluate.dataset import Dataset, check_shape, checked_dataset
from pipeline.truncate import shown, truncate


def column_names(file: Path) -> list[str]:
    """Read the column names in the first line.

    Parameters
    ----------
    file
        CSV file.

    Raises
    ------
    DataError
        If the file is empty or no text file.
    """
    try:
        with file.open(newline="", encoding="utf-8-sig") as text:  # polars renames columns of the same name
            names = next(csv.reader(bounded_lines(file, text)), [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{file}: cannot be read as CSV: {error}") from error
    if not names:
        raise DataError(f"{file}: the file is empty; expected is a line of column names, then rows")
    return names


def read_table(file: Path, label: str | None) -> Dataset:
    """Read a table of numbers.

    Parameters
    ----------
    file
        CSV file.
    label
        Column of the labels; None for the last column.

    Returns
    -------
    Dataset
        Checked rows and labels.

    Raises
    ------
    DataError
        If a value is not a number; the error names the line and the column.
    ConfigError
        If there is no column `label`.
    """
    names = column_names(file)
    label = names[-1] if label is None else label
    if label not in names:
        columns = truncate(", ".join(names))
        raise ConfigError(f"--label {label}: {file} has no such column; its columns are {columns}")
    if all(map(_is_number, names)):
        raise DataError(f"{file}, line 1: these are numbers; the first line has to name the columns")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise DataError(
            f"{file}, line 1: {count} columns are called {shown(name)}; their names have to differ"
        )
    raw = _read_text(file, names)
    table = raw.select(pl.all().str.strip_chars().cast(pl.Float64, strict=False))
    for name in names:
        missing = table[name].is_null()
        if missing.any():
            row = int(np.argmax(missing.to_numpy()))
            raise DataError(
                f"{file}, line {row + 2}, column {truncate(name)}: "
                f"{shown(raw[name][row] or '')} is not a number"
            )
    check_shape(file, table.height, table.width - 1)
    return checked_dataset(
        table.drop(label).to_numpy(), table[label].to_numpy(), lambda row: f"{file}, line {row + 2}"
    )


def _read_text(file: Path, names: list[str]) -> pl.DataFrame:
    """Read all values of a table as text."""
    refuse_large(file, LARGEST_TABLE)
    # Without empty lines at the end, from each of which polars would make a row.
    content = file.read_bytes().rstrip()
    if b"\n" not in content:
        content = content.replace(b"\r", b"\n")
    refuse_large_table(str(file), content.count(b"\n"), len(names))
    try:
        raw = pl.read_csv(content, infer_schema=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise DataError(_explain(file, len(names), error)) from error
    if raw.width != len(names):
        raise DataError(f"{file}: line 1 names {len(names)} columns, but the table has {raw.width}")
    raw.columns = names
    return raw


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _explain(file: Path, columns: int, error: BaseException) -> str:
    """Describe the line that polars could not read, which its own message does not name."""
    with file.open(newline="", encoding="utf-8", errors="replace") as text, suppress(csv.Error):
        reader = csv.reader(bounded_lines(file, text))
        for row in reader:
            if len(row) > columns:
                return f"{file}, line {reader.line_num}: {len(row)} values for {columns} columns"
    return f"{file}: cannot be read as CSV: {truncate(str(error).splitlines()[0])}"
