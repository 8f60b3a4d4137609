"""Tables from files of all shapes: what each is taken for, and which lines are left out."""

from __future__ import annotations

import codecs
import gzip
import random
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import DataError
from pipeline.sources.table_files import SEPARATORS, TableText, read_table_file

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ROWS = [("u1", 3, 0.5, "red wine"), ("u2", -4, None, "caf\xe9"), ("u1", 5, 2.25, "NA")]
NAMES = ("user", "count", "price", "words")
TYPES = [pl.String, pl.Int64, pl.Float64, pl.String]


def read(folder: Path, content: str | bytes, name: str = "log.csv") -> TableText:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table_file(path)


def text(separator: str, *, header: bool = True, missing: str = "", ends: str = "\n") -> str:
    lines = [NAMES] * header + [tuple(missing if each is None else str(each) for each in row) for row in ROWS]
    return "".join(separator.join(line) + ends for line in lines)


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("missing", ["", "NA", "n/a", "nan", "NULL", "None", "-", " "])
def test_separators_ends_of_lines_and_missing_numbers(
    tmp_path: Path, separator: str, ends: str, missing: str
) -> None:
    found = read(tmp_path, text(separator, missing=missing, ends=ends))
    assert found.frame.schema == dict(zip(NAMES, TYPES, strict=True))
    assert found.frame.rows() == ROWS  # "NA" is a text where others are texts
    assert found.left_out == 0


def test_without_a_line_of_names_columns_are_numbered(tmp_path: Path) -> None:
    found = read(tmp_path, text("\t", header=False), "log.tsv")
    assert found.frame.columns == ["column_1", "column_2", "column_3", "column_4"]
    assert found.frame.rows() == ROWS
    assert (
        found.taken_for
        == "Read as text separated by tabs, no line of names (columns are column_1, column_2 and so on)"
    )


@pytest.mark.parametrize(
    ("content", "columns", "rows"),
    [
        ("user,kind\na,x\nb,y\n", ["user", "kind"], 2),
        ("a,x\nb,y\na,y\n", ["column_1", "column_2"], 3),
        (",price\n0,2.5\n1,3\n", ["column_1", "price"], 2),
        ("label\n1\n0\n", ["label"], 2),
        ("user,kind\n", ["user", "kind"], 0),
        (" user , price \n a , 2 \n b , 3 \n", ["user", "price"], 2),
        ('user,says\n"a","x, y"\n"b","two\nlines"\n', ["user", "says"], 2),
        ("user|at\na|2026-03-01 12:00:00\nb|2026-03-01 12:00:01\n", ["user", "at"], 2),
    ],
)
def test_names_are_told_from_values(tmp_path: Path, content: str, columns: list[str], rows: int) -> None:
    found = read(tmp_path, content)
    assert (found.frame.columns, found.frame.height, found.left_out) == (columns, rows, 0)


def test_marks_other_encodings_and_compression(tmp_path: Path) -> None:
    content = text(";")
    plain = read(tmp_path, content).frame
    assert read(tmp_path, codecs.BOM_UTF8 + content.encode()).frame.equals(plain)
    assert read(tmp_path, gzip.compress(content.encode()), "log.txt.gz").frame.equals(plain)
    frames = [zstd.compress(each.encode()) for each in (content[:9], content[9:])]
    assert read(tmp_path, b"".join(frames), "log.txt.zst").frame.equals(plain)
    latin = read(tmp_path, content.encode("latin-1"), "log.data")
    assert latin.frame.equals(plain)
    assert latin.taken_for.endswith("encoded in Latin-1")
    assert "Latin-1" not in read(tmp_path, content).taken_for


def test_commas_of_numbers(tmp_path: Path) -> None:
    found = read(tmp_path, "km;price\n1,5;NA\n-2,25; 3\n")
    assert found.frame.rows() == [(1.5, None), (-2.25, 3)]
    assert "decimal commas" in found.taken_for
    assert "decimal commas" not in read(tmp_path, "km;price\n1,5;2.5\n1,25;3\n").taken_for


@pytest.mark.parametrize("quoted", [False, True])
def test_lines_of_another_width_are_left_out_and_told(tmp_path: Path, quoted: bool) -> None:
    more = '"b,c",2,3\n' if quoted else "b,2,3\n"
    found = read(tmp_path, f"user,a,b\na,1,2\n\nshort,1\n{more}long,1,2,3\nlong,1,2,3\n")
    assert found.frame["user"].to_list() == ["a", "b,c" if quoted else "b"]
    assert found.left_out == 3
    assert found.example == "line 4 has not 3 values: short,1"
    assert found.taken_for.endswith(". Lines left out, as they have not 3 values: 3, line 4, 6, 7")


def test_json_is_a_list_or_one_object_a_line(tmp_path: Path) -> None:
    lines = '{"user":"a","price":1}\n{"user":"b","price":null}\n'
    listed = f"\n[{','.join(lines.splitlines())}]"
    for name, content in (
        ("log.jsonl", lines),
        ("log.json", lines),
        ("log.json", listed),
        ("log.ndjson", "\ufeff" + lines),
        ("log.jsonl.gz", gzip.compress(lines.encode())),
    ):
        assert read(tmp_path, content, name).frame.rows() == [("a", 1), ("b", None)]


def test_whole_numbers_of_any_size_keep_their_digits(tmp_path: Path) -> None:
    for missing in ("7", "NA"):
        ids = read(tmp_path, f"id,n\n{2**70},1\n{missing},2\n").frame["id"]
        assert str(ids[0]) == str(2**70)


def test_numbers_may_have_something_between_thousands(tmp_path: Path) -> None:
    german = read(tmp_path, "a;b\n1.299,00;x\n12,5;y\n-1.234.567,25;z\n").frame["a"]
    assert german.to_list() == [1299.0, 12.5, -1234567.25]
    english = read(tmp_path, 'a,b\n"1,299.00",x\n12.5,y\n').frame["a"]
    assert english.to_list() == [1299.0, 12.5]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("log.csv", b"", "the file is empty"),
        ("log.csv", b" \n\n", "the file is empty"),
        ("log.csv", b"a,b\n\0,1\n", "it has zero bytes"),
        ("log.csv.gz", b"a,b\n", "cannot be decompressed"),
        ("log.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:-6], "cannot be decompressed"),
        ("log.csv.zst", b"a,b\n", "cannot be decompressed"),
        ("log.csv.zst", zstd.compress(b"a,b\n1,2\n")[:-2], "cannot be decompressed"),
        ("log.parquet.gz", b"", r"a table is a file of \.csv, \.tsv"),
        ("log.json", b"[{]", "cannot be read as a table"),
        ("log", b"a,b", "a table is a file of"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read(tmp_path, content, name)


@given(content=st.binary(max_size=200) | st.text(alphabet='ab1,;|"\n\t -.', max_size=200).map(str.encode))
def test_any_bytes_are_a_table_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("any")
    try:
        found = read(folder, content)
    except DataError:
        return
    assert found.frame.height + found.left_out <= content.count(b"\n") + content.count(b"\r") + 1


def test_a_large_file_loses_no_line(tmp_path: Path) -> None:
    chance = random.Random(5)
    lines = [f"u{chance.randrange(90)};{n};{chance.random():.3f}" for n in range(20_000)]
    bad = sorted(chance.sample(range(300, 20_000), 40))
    for row in bad:
        lines[row] += ";9"
    found = read(tmp_path, "user;number;price\n" + "\n".join(lines))
    assert found.left_out == len(bad)
    assert found.frame["number"].to_list() == [n for n in range(20_000) if n not in set(bad)]
