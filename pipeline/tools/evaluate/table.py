"""Examples in a CSV file: a line of names, then a line of numbers for each example."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl

from pipeline.errors import ConfigError, DataError
from pipeline.tools.evaluate.examples import Examples, check_shape, examples


def column_names(file: Path) -> list[str]:
    """Read the names in the first line.

    Raises
    ------
    DataError
        The file is empty or no text.
    """
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            names = next(csv.reader(lines), [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{file}: cannot be read as CSV: {error}") from error
    if not names:
        raise DataError(f"{file}: the file is empty; expected is a line of column names and rows")
    return names


def read_table(file: Path, label: str | None) -> Examples:
    """Read a table of numbers whose labels are in the column `label`, or in the last one.

    Raises
    ------
    DataError
        Naming the line and the column.
    ConfigError
        There is no column `label`.
    """
    names = column_names(file)
    label = names[-1] if label is None else label
    if label not in names:
        raise ConfigError(f"--label {label}: {file} has no such column; there are {', '.join(names)}")
    if all(map(_is_number, names)):
        raise DataError(f"{file}, line 1: these are numbers; the first line has to name the columns")
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise DataError(f"{file}, line 1: {times} columns are called {name!r}; their names have to differ")
    try:
        # Empty lines at the end are none; polars would make a row of each.
        raw = pl.read_csv(file.read_bytes().rstrip(), infer_schema=False)
    except pl.exceptions.PolarsError as error:
        raise DataError(_explain(file, len(names), error)) from error
    table = raw.select(pl.all().str.strip_chars().cast(pl.Float64, strict=False))
    for name in names:
        missing = table[name].is_null()
        if missing.any():
            row = int(np.argmax(missing.to_numpy()))
            raise DataError(
                f"{file}, line {row + 2}, column {name}: {raw[name][row] or ''!r} is not a number"
            )
    check_shape(file, table.height, table.width - 1)
    return examples(
        table.drop(label).to_numpy(), table[label].to_numpy(), lambda row: f"{file}, line {row + 2}"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _explain(file: Path, columns: int, error: pl.exceptions.PolarsError) -> str:
    """Find the line that polars could not read, which its own message does not place."""
    with file.open(newline="", encoding="utf-8", errors="replace") as lines:
        reader = csv.reader(lines)
        for row in reader:
            if len(row) > columns:
                return f"{file}, line {reader.line_num}: {len(row)} values for {columns} columns"
    return f"{file}: cannot be read as CSV: {str(error).splitlines()[0]}"
