"""Read tables from files as people have them: text with any separator, JSON, Parquet, also compressed.

What a file of text is like is decided by its first lines: what separates values, and whether the first line
has names. Values stand for nothing where they are empty or one of `NOTHING`, but in columns of text, where
only the empty ones do. Lines with another number of values than the first are left out and counted.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from pipeline.errors import DataError
from pipeline.input_files import LARGEST_TEXT, LONGEST_LINE, refuse_large
from pipeline.truncate import truncate

TEXTS: Final = (".csv", ".tsv", ".txt", ".data")
OBJECTS: Final = (".json", ".jsonl", ".ndjson")
ENDINGS: Final = (*TEXTS, *OBJECTS, ".parquet")
"""Endings of tables. All but the last may be followed by `COMPRESSED`."""
COMPRESSED: Final = (".gz", ".zst")
NOTHING: Final = ("", "na", "n/a", "nan", "null", "none", "-", "?")
"""What stands for a missing number, in lower case."""
MOSTLY: Final = 0.95
"""Share of a column's values that are numbers, from which on others may be mistakes."""
SEPARATORS: Final = (",", "\t", ";", "|", "::")
FIRST_LINES: Final = 200
"""Lines that decide what a file is like."""
SHOWN_LINES: Final = 3
"""Numbers of lines that are told of those left out, at most."""
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UNIT: Final = "\x1f"
"""Stands for a separator of several characters; no text has it."""
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_COMMA_NUMBER: Final = re.compile(r"[+-]?\d+,\d+")
_NAMES: Final = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "pipes", "::": "::"}


class TableText(NamedTuple):
    """A table, and what its file was taken for."""

    frame: pl.DataFrame
    taken_for: str
    """What was decided, as a sentence; empty where the format says all."""
    left_out: int = 0
    """Lines with another number of values."""
    example: str = ""
    """The first of these, as text."""


class _Dialect(NamedTuple):
    separator: str
    width: int
    header: bool
    decimal_comma: bool


def is_table(path: Path) -> bool:
    """Return whether a path has the ending of a table.

    Examples
    --------
    >>> is_table(Path("log.tsv.gz")), is_table(Path("log.xlsx"))
    (True, False)
    """
    return ending(path) in ENDINGS


def ending(path: Path) -> str:
    """Return the ending of a file, without that of a compression.

    Examples
    --------
    >>> ending(Path("log.TSV.gz")), ending(Path("log"))
    ('.tsv', '')
    """
    name = Path(path.name.lower())
    return Path(name.stem if name.suffix in COMPRESSED else name).suffix


def read_table_file(path: Path) -> TableText:
    """Read a table.

    Parameters
    ----------
    path
        A file with one of `ENDINGS`.

    Raises
    ------
    DataError
        There is no such file, or it is no such table.
    """
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    kind = ending(path)
    try:
        if kind in TEXTS:
            return _text(path, _content(path))
        if kind in OBJECTS:
            return TableText(_objects(_content(path)), "")
        if path.suffix.lower() == ".parquet":
            return TableText(pl.read_parquet(path), "")
    except pl.exceptions.NoDataError as error:
        raise DataError(f"{path}: the file is empty") from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, csv.Error) as error:
        text = (str(error).splitlines() or ["unknown reason"])[0]
        raise DataError(f"{path}: cannot be read as a table: {truncate(text)}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    compressed = " or ".join(COMPRESSED)
    raise DataError(f"{path}: a table is a file of {', '.join(ENDINGS)}, or of these with {compressed}")


def _content(path: Path) -> bytes:
    """Return what a file has, decompressed, without a byte order mark."""
    refuse_large(path)
    if path.suffix.lower() in COMPRESSED:
        content = _decompressed(path)
        if len(content) > LARGEST_TEXT:
            raise DataError(f"{path}: decompressed it is too large; the limit is {LARGEST_TEXT / 1e9:g} GB")
    else:
        content = path.read_bytes()
    return content.removeprefix(codecs.BOM_UTF8)


def _decompressed(path: Path) -> bytes:
    """Return what a compressed file has, and one byte more than `LARGEST_TEXT` at most."""
    errors: tuple[type[Exception], ...] = (EOFError, zlib.error, gzip.BadGzipFile)
    try:
        if path.suffix.lower() == ".gz":
            with gzip.open(path) as file:
                return file.read(LARGEST_TEXT + 1)
        if sys.version_info >= (3, 14):
            from compression import zstd  # noqa: PLC0415 - where it is needed
        else:
            from backports import zstd  # noqa: PLC0415 - as above: who installs polars alone lacks it
        errors = (EOFError, zstd.ZstdError)
        with zstd.open(path) as file:
            return file.read(LARGEST_TEXT + 1)
    except ImportError:
        raise DataError(
            f"{path}: the package backports.zstd is needed: pip install 'forks-stream[tables]'"
        ) from None
    except errors as error:
        raise DataError(f"{path}: cannot be decompressed: {error}") from error


def _objects(content: bytes) -> pl.DataFrame:
    """Return the rows of JSON: a list of objects, or one object a line."""
    if content.lstrip()[:1] == b"[":
        return pl.read_json(io.BytesIO(content), infer_schema_length=None)
    return pl.read_ndjson(io.BytesIO(content), infer_schema_length=None)


def _text(path: Path, content: bytes) -> TableText:
    """Return the rows of a text."""
    encoding = "UTF-16" if content.startswith(_UTF16) else "UTF-8" if _is_utf8(content) else "Latin-1"
    if encoding != "UTF-8":
        content = content.decode(encoding, errors="replace").encode()
    dialect = _dialect(path, content)
    content, left_out, numbers, example = _even(content, dialect)
    separator = _UNIT if len(dialect.separator) > 1 else dialect.separator
    frame = pl.read_csv(
        io.BytesIO(content),
        has_header=dialect.header,
        separator=separator or ",",
        quote_char=None if separator == _UNIT else '"',
        decimal_comma=dialect.decimal_comma,
        infer_schema_length=None,
        new_columns=None if dialect.header else [f"column_{n}" for n in range(1, dialect.width + 1)],
    )
    stripped = {name: name.strip() or f"column_{number}" for number, name in enumerate(frame.columns, 1)}
    if len(set(stripped.values())) == len(stripped):
        frame = frame.rename(stripped)
    frame = frame.with_columns(_values(each, decimal_comma=dialect.decimal_comma) for each in frame)
    names = (
        "the first line has the names"
        if dialect.header
        else "no line of names (columns are column_1, column_2 and so on)"
    )
    said = [f"separated by {_NAMES[dialect.separator]}" if dialect.separator else "of one column", names]
    said += ["decimal commas"] * dialect.decimal_comma + [f"encoded in {encoding}"] * (encoding != "UTF-8")
    text = f"Read as text {', '.join(said)}"
    if left_out:
        lines = ", ".join(f"{number:,}" for number in numbers)
        more = ", ..." if left_out > len(numbers) else ""
        text += f". Lines left out, as they have not {dialect.width} values: {left_out:,}, line {lines}{more}"
    return TableText(frame, text, left_out, example)


def _is_utf8(content: bytes) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for begin in range(0, len(content), LONGEST_LINE):
            decoder.decode(content[begin : begin + LONGEST_LINE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _dialect(path: Path, content: bytes) -> _Dialect:
    """Decide by the first lines what separates values, and whether the first line has names."""
    text = content[: FIRST_LINES * 10_000].decode(errors="replace")
    lines = [line for line in text.splitlines()[:FIRST_LINES] if line.strip()]
    if not lines:
        raise pl.exceptions.NoDataError("empty")
    if "\0" in text:
        raise DataError(f"{path}: cannot be read as a table: it has zero bytes")
    best, separator, rows = (-1.0, 0), "", [[line] for line in lines]
    for each in SEPARATORS:
        split = [*_split(lines, each)]
        widths = Counter(map(len, split))
        width, count = widths.most_common(1)[0]
        score = (count / len(split), width)
        if width > 1 and (score[0] > best[0] + 0.05 or (score[0] >= best[0] - 0.05 and width > best[1])):
            best, separator, rows = score, each, split
    width = Counter(map(len, rows)).most_common(1)[0][0]
    header = _has_names([row for row in rows if len(row) == width] if len(rows[0]) != width else rows)
    values = [value.strip() for row in rows[header:] for value in row]
    comma = (
        separator != ","
        and any(map(_COMMA_NUMBER.fullmatch, values))
        and not any("." in value and _NUMBER.fullmatch(value) for value in values)
    )
    return _Dialect(separator, width, header, comma)


def _split(lines: Sequence[str], separator: str) -> Iterator[list[str]]:
    if len(separator) > 1:
        return (line.split(separator) for line in lines)
    return csv.reader(lines, delimiter=separator)


def _has_names(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row has names: texts above numbers, or texts that are no values below."""
    first, *others = ([value.strip() for value in row] for row in rows)
    if not any(first) or any(_is_number(value) for value in first):
        return False
    if any(_is_number(value) for row in others for value in row):
        return True
    return not any(value == name for row in others for value, name in zip(row, first, strict=False) if value)


def _is_number(value: str) -> bool:
    return bool(_NUMBER.fullmatch(value) or _COMMA_NUMBER.fullmatch(value))


def _even(content: bytes, dialect: _Dialect) -> tuple[bytes, int, list[int], str]:
    """Return the content of lines of the usual width; how many others there are, where, and the first."""
    separator = dialect.separator
    if not separator:
        return content, 0, [], ""
    if b'"' in content and len(separator) == 1:
        return _even_quoted(content, dialect)
    raw = pl.Series("line", content.decode().split("\n"), dtype=pl.String).str.strip_suffix("\r")
    blank = raw.str.strip_chars() == ""
    even = raw.str.count_matches(separator, literal=True) == dialect.width - 1
    if len(separator) > 1:
        raw = raw.str.replace_all(separator, _UNIT, literal=True)
    odd = (~even & ~blank).arg_true().to_list()
    if not odd and len(separator) == 1:
        return content, 0, [], ""
    kept = raw.filter(even).str.join("\n").item().encode()
    if not odd:
        return kept, 0, [], ""
    found = raw[odd[0]].replace(_UNIT, separator)
    return kept, len(odd), [number + 1 for number in odd[:SHOWN_LINES]], _ragged(odd[0] + 1, found, dialect)


def _even_quoted(content: bytes, dialect: _Dialect) -> tuple[bytes, int, list[int], str]:
    """Do what `_even` does for text with quotes, in which a value may have separators and ends of lines."""
    reader = csv.reader(io.StringIO(content.decode(), newline=""), delimiter=dialect.separator)
    kept, odd, example = io.StringIO(newline=""), [], ""
    writer = csv.writer(kept, delimiter=dialect.separator, lineterminator="\n")
    begin = 1
    for row in reader:
        if len(row) == dialect.width:
            writer.writerow(row)
        elif any(value.strip() for value in row):
            odd.append(begin)
            example = example or _ragged(begin, dialect.separator.join(row), dialect)
        begin = reader.line_num + 1
    if not odd:
        return content, 0, [], ""
    return kept.getvalue().encode(), len(odd), odd[:SHOWN_LINES], example


def _ragged(number: int, line: str, dialect: _Dialect) -> str:
    return f"line {number:,} has not {dialect.width} values: {truncate(line)}"


def _values(column: pl.Series, *, decimal_comma: bool) -> pl.Series:
    """Return a column of text without blanks around values; as numbers if all others are missing."""
    if column.dtype != pl.String:
        return column.fill_nan(None) if column.dtype.is_float() else column
    column = column.str.strip_chars()
    known = column.set(column == "", None)
    missing = known.str.to_lowercase().is_in(NOTHING).fill_null(value=True)
    some = known.filter(~missing)
    if not len(some):
        return known
    plain = _plain(some, decimal_comma=decimal_comma)
    share = plain.str.contains(rf"^{_NUMBER.pattern}$").mean()
    if not isinstance(share, float) or share < MOSTLY:
        return known
    if share < 1.0:
        return _plain(known, decimal_comma=decimal_comma)
    kind = pl.Int64 if plain.str.contains(r"^[+-]?\d+$").all() else pl.Float64
    cast = _plain(known.set(missing, None), decimal_comma=decimal_comma).cast(kind, strict=False)
    if cast.null_count() != len(column) - len(some):
        return known  # whole numbers beyond 64 bits
    return cast


def _plain(column: pl.Series, *, decimal_comma: bool) -> pl.Series:
    """Return text in which numbers have a decimal point, and nothing between thousands."""
    mark, point = (",", ".") if decimal_comma else (".", ",")
    grouped = rf"^[+-]?\d{{1,3}}({re.escape(point)}\d{{3}})+({re.escape(mark)}\d+)?$"
    frame = pl.DataFrame({"text": column})
    text = pl.col("text")
    text = (
        pl.when(text.str.contains(grouped))
        .then(text.str.replace_all(point, "", literal=True))
        .otherwise(text)
    )
    if decimal_comma:
        comma = text.str.contains(rf"^{_COMMA_NUMBER.pattern}$")
        text = pl.when(comma).then(text.str.replace(",", ".", literal=True)).otherwise(text)
    return frame.select(text.alias(column.name)).to_series()


def as_numbers(column: pl.Series) -> pl.Series | None:
    """Return a column of text as numbers, null where a value is none; None if not nearly all of them are.

    Examples
    --------
    >>> as_numbers(pl.Series([*map(str, range(40)), "n/a EUR"])).null_count()
    1
    >>> as_numbers(pl.Series(["1", "a"])) is None
    True
    """
    known = column.filter(~column.str.to_lowercase().is_in(NOTHING).fill_null(value=True))
    numbers = column.cast(pl.Float64, strict=False)
    found = len(numbers) - numbers.null_count()
    return numbers if len(known) > found >= MOSTLY * len(known) else None
