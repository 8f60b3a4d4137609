"""Files that are damaged, or that claim to be larger than any memory: each is refused with its place."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.lib import format as npy
from safetensors.numpy import save
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.settings import Config
from pipeline.errors import DataError
from pipeline.features.tables import TagTable, UserTable
from pipeline.model.factory import ModelFactory
from pipeline.model.snapshot import SnapshotScalars, pack, parse
from pipeline.sources.kuairec import COLUMNS, read_events
from pipeline.tools.checkpoint.snapshot_file import read_snapshot_file
from pipeline.tools.evaluate.arrays import read_arrays
from pipeline.tools.evaluate.dataset import Dataset
from pipeline.tools.evaluate.libsvm import read_libsvm
from pipeline.tools.evaluate.table import read_table
from tests.support.examples import examples

X = np.array([[0.5, 0.0], [0.0, 1e-3], [3.0, 4.0]])
Y = np.array([1.0, -1.0, 1.0])
LONGEST_MESSAGE = 600
"""Characters of an error: a path and an excerpt."""


def refusal(read: Callable[[Path], object], file: Path) -> str:
    with pytest.raises(DataError) as caught:
        read(file)
    message = str(caught.value)
    assert message.startswith(str(file))
    assert len(message) < LONGEST_MESSAGE
    return message.removeprefix(str(file))


def array_bytes(array: Any) -> bytes:
    content = io.BytesIO()
    npy.write_array(content, np.asarray(array))
    return content.getvalue()


def header_bytes(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    content = io.BytesIO()
    npy.write_array_header_1_0(content, {"descr": descr, "fortran_order": False, "shape": shape})
    return content.getvalue()


def archive(file: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(file, "w", compression, compresslevel=1) as content:
        for name, data in members.items():
            content.writestr(name, data)
    return file


def patched(file: Path, offset_in_local: int, offset_in_table: int, value: bytes) -> None:
    """Change a field of the first member, in its own header and in the table of contents."""
    data = bytearray(file.read_bytes())
    for begin in (offset_in_local, data.index(b"PK\x01\x02") + offset_in_table):
        data[begin : begin + len(value)] = value
    file.write_bytes(bytes(data))


SPARSE = {
    "data": array_bytes(np.ones(2)),
    "indices": array_bytes([0, 1]),
    "indptr": array_bytes([0, 1, 1, 2]),
    "shape": array_bytes([3, 2]),
    "y": array_bytes(Y),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": b"no array at all"}, "the array X: the magic string is not correct"),
        ({"X": array_bytes(X)[:40]}, "the array X: EOF"),
        ({"X": b"\x93NUMPY\x01\x00\x10\x00" + b"{'descr': '<f8'}"}, "the array X: Header does not contain"),
        ({"X": b"\x93NUMPY\x01\x00\x10\x00" + b"(((((((((((((((("}, "the array X: its header is not that of"),
        ({"X": b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 99}, "the array X: EOF"),
        (
            {"X": header_bytes((10**12, 2))},
            "X is damaged: its shape needs 16,000,000,000,000 bytes",
        ),
        ({"X": header_bytes((-3, 2))}, "X is damaged: its shape needs -48 bytes"),
        ({"X": array_bytes(X)[:-8]}, "X is damaged: its shape needs 48 bytes, it has 40"),
        ({"X": array_bytes(X) + b"\0"}, "X is damaged: its shape needs 48 bytes, it has 49"),
        ({"X": header_bytes((1,), "|O")}, "X has to be an array of 2 dimension(s) and of real numbers"),
        ({"X": array_bytes(np.zeros((3, 0)))}, "there is no example: 3 rows of 0 features"),
        (
            SPARSE | {"shape": array_bytes([np.inf, 2.0])},
            "shape has to be an array of 1 dimension(s)",
        ),
        (SPARSE | {"shape": array_bytes([3])}, "shape has 1 numbers; a table has 2"),
        (SPARSE | {"shape": array_bytes([3, 2**62])}, "GB as a dense table; the limit is 2 GB"),
        (SPARSE | {"shape": array_bytes([3, -2])}, "there is no example: 3 rows of -2 features"),
        (SPARSE | {"shape": array_bytes([2**62, 2])}, "rows, but y has 3 labels"),
        (SPARSE | {"indptr": array_bytes([0, 1, 1, 2**62])}, "do not form a matrix"),
        (SPARSE | {"indices": array_bytes([0, -1])}, "do not form a matrix"),
        (
            SPARSE | {"indices": array_bytes([0.0, 1.0])},
            "indices has to be an array of 1 dimension(s)",
        ),
        (SPARSE | {"data": header_bytes((2**40,))}, "data is damaged: its shape needs"),
    ],
)
def test_an_archive_is_refused_by_its_headers(
    changes: dict[str, bytes], message: str, tmp_path: Path
) -> None:
    members = {f"{name}.npy": data for name, data in ({"y": array_bytes(Y)} | changes).items()}
    assert message in refusal(read_arrays, archive(tmp_path / "data.npz", members))


def test_a_member_without_the_suffix_of_arrays_is_no_array(tmp_path: Path) -> None:
    file = archive(tmp_path / "data.npz", {"X": b"text", "y.npy": array_bytes(Y)})
    assert "expected are the arrays X and y, or data, indices, indptr, shape and y; found: y" in refusal(
        read_arrays, file
    )


def test_an_archive_that_cannot_be_unpacked_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "data.npz"
    members = {"X.npy": array_bytes(X), "y.npy": array_bytes(Y)}
    archive(file, members)
    patched(file, 6, 8, b"\x01\x00")
    assert "the array X: File 'X.npy' is encrypted" in refusal(read_arrays, file)
    for method in (b"\x63\x00", b"\x0c\x00", b"\x0e\x00"):  # unknown, bzip2, LZMA
        archive(file, members)
        patched(file, 8, 10, method)
        assert "the array X: it is not compressed as NumPy does" in refusal(read_arrays, file)
    noise = np.random.default_rng(0).normal(size=(3, 9_000))
    archive(file, members | {"X.npy": array_bytes(noise)})
    data = bytearray(file.read_bytes())
    data[100_000:100_100] = bytes(100)
    file.write_bytes(data)
    assert "the array X is damaged" in refusal(read_arrays, file)
    archive(file, members)
    data = bytearray(file.read_bytes())
    data[60:80] = bytes(20)
    file.write_bytes(data)
    assert "cannot be read as an .npz of plain arrays" in refusal(read_arrays, file)


def valid_npz() -> bytes:
    content = io.BytesIO()
    np.savez_compressed(content, X=X, y=Y)
    return content.getvalue()


def valid_sparse() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as members:
        for name, data in SPARSE.items():
            members.writestr(f"{name}.npy", data)
    return content.getvalue()


PLAYS = ",".join(COLUMNS).encode() + b"\n1,2,30,40,5.5,0.75\n1,3,30,40,7,0.75\n"
READERS: dict[str, tuple[Callable[[Path], object], bytes]] = {
    "dense.npz": (read_arrays, valid_npz()),
    "sparse.npz": (read_arrays, valid_sparse()),
    "data.libsvm": (read_libsvm, b"+1 1:0.5 3:-2e-3\n-1 2:7 # comment\n"),
    "data.csv": (lambda file: read_table(file, None), b'a,"b",y\n0.5,1e3,1\n-2,.5,0\n'),
    "plays.csv": (read_events, PLAYS),
    "tags.csv": (TagTable, b'video_id,feat\n1,"[8, 2]"\n2,[3]\n'),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.filterwarnings("ignore")  # of NumPy, about headers that an old Python wrote
@examples(150)
@given(changes=st.lists(st.tuples(st.integers(0, 2_000), st.binary(max_size=4)), min_size=1, max_size=4))
@example(changes=[(0, b"")])
def test_a_damaged_file_is_read_or_refused(
    name: str, changes: list[tuple[int, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    read, data = READERS[name]
    damaged = bytearray(data)
    for position, new in changes:
        begin = position % len(damaged) if damaged else 0
        damaged[begin : begin + max(len(new), 1)] = new
    file = tmp_path_factory.mktemp("damaged") / name
    file.write_bytes(damaged)
    reason = ""
    try:
        read(file)
    except DataError as error:
        reason = str(error)
    assert not reason or str(file) in reason


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"1 {'9' * 5_000}:1", "line 1: '9999"),
        (f"1 {'9' * 19}:1", "is not INDEX:VALUE"),
        (f"1 {'0' * 5_000}1:1 1:1", "line 1: index 1 after 1"),
        (f"{'x' * 10**6} 1:1", "line 1: the label 'xxxx"),
        (f"1 1:{'1' * 10**6}x", "line 1: '1:1111"),
        ("1 " + "1" * 2**24, "line 1: the line has more than 16,777,216 characters"),
        ("1 100000000:1\n1 3:1\n1 400000000:1\n-1 x", "line 3: 3 rows of 400,000,000 features take 9.6 GB"),
    ],
    ids=["digits", "64 bits", "zeros", "label", "value", "line", "table"],
)
def test_a_line_of_any_size_is_refused_with_an_excerpt(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "data.libsvm").write_text(line + "\n")
    assert message in refusal(read_libsvm, tmp_path / "data.libsvm")


def test_a_table_whose_lines_end_with_carriage_returns_is_read(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(b"a,b,y\r0.5,1,1\r2,3,0\r")
    found = read_table(tmp_path / "data.csv", None)
    assert found.X.tolist() == [[0.5, 1.0], [2.0, 3.0]]
    assert found.y.tolist() == [1.0, -1.0]
    plays = tmp_path / "plays.csv"
    plays.write_bytes(PLAYS.replace(b"\n", b"\r"))
    assert "lines have to end with a line feed" in refusal(read_events, plays)


def test_quotes_in_names_are_those_of_csv(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text('a,"y""q"\n1,1\n2,0\n')
    assert read_table(tmp_path / "data.csv", 'y"q').y.tolist() == [1.0, -1.0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("data.csv", b"a,y\n" + b"x" * 10**6 + b",1\n", "line 2, column a: 'xxxx"),
        ("data.csv", b"a" * 10**5 + b",y\nx,1\n", "line 2, column aaaa"),
        ("data.csv", b"a" * 10**6 + b",y\n1,1\n", "cannot be read as CSV: field larger than field limit"),
        ("data.csv", b"1," * 2**24, "line 1: the line has more than 16,777,216 characters"),
        ("plays.csv", PLAYS + b"x" * 10**6 + b",2,3,4,5,6\n", "line 4, column user_id: 'xx"),
        ("plays.csv", b"x" * 10**6 + b"\n1\n", "line 1: no column user_id"),
        ("tags.csv", b'video_id,feat\n1,"[1000000000]"\n', "column feat: 1 rows of 1,000,000,001"),
        ("tags.csv", b"video_id,feat\n1,[99999999999999999999]\n", "must hold lists of tag numbers"),
        ("plays.csv", PLAYS.replace(b".5,0.75\n1", b".21") + b'"', "not a CSV file as expected"),
        ("tags.csv", b'video_id,feat\n1,"' + b"[" * 10**5 + b'"\n', "must hold lists of tag numbers"),
    ],
)  # fmt: skip
def test_values_of_any_size_are_refused_with_an_excerpt(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    assert message in refusal(READERS[name][0], tmp_path / name)


def test_a_user_table_with_as_many_categories_as_users_is_refused(tmp_path: Path) -> None:
    categories = ["user_active_degree", "follow_user_num_range", "fans_user_num_range"]
    names = ["user_id", "is_lowactive_period", "is_live_streamer", "is_video_author", *categories]
    names += ["friend_user_num_range", "register_days_range"]
    names += [f"onehot_feat{i}" for i in (0, 1, 2, 4, 5, 6, 7, *range(9, 18))]
    rows = "\n".join(",".join([str(row)] * len(names)) for row in range(4_000))
    (tmp_path / "users.csv").write_text(",".join(names) + "\n" + rows)
    assert "GB as a dense table" in refusal(UserTable, tmp_path / "users.csv")


@pytest.mark.parametrize("arguments", [[], ["--set", f"rank={10**6}", "--set", f"budget={4 * 10**6}"]])
def test_a_learner_that_does_not_fit_into_memory_is_refused(arguments: list[str], tmp_path: Path) -> None:
    columns = 4 if arguments else 100_000
    np.savez_compressed(tmp_path / "wide.npz", X=np.ones((2, columns)), y=np.array([1, -1]))
    found = CliRunner().invoke(app, ["evaluate", str(tmp_path / "wide.npz"), *arguments])
    assert isinstance(found.exception, DataError)
    assert str(found.exception).startswith(f"{tmp_path / 'wide.npz'}: a learner of {columns:,} columns")
    assert "the limit is 1 GB" in str(found.exception)


def test_a_setting_of_thousands_of_digits_or_brackets_is_a_wrong_setting(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", X=X, y=Y)
    for value in ("9" * 5_000, "[" * 10**5):
        found = CliRunner().invoke(app, ["evaluate", str(tmp_path / "data.npz"), "--set", f"budget={value}"])
        assert "learner.budget: " in str(found.exception)
        assert len(str(found.exception)) < LONGEST_MESSAGE


def snapshot_with(plain: bytes) -> bytes:
    return save({"plain": np.frombuffer(plain, np.uint8)})


def test_a_snapshot_that_is_none_is_a_wrong_file(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    whole = pack(ModelFactory(Config()).new_model())
    deep = b'{"version":3,"other":' + b"[" * 10**6 + b"}"
    for data in (b"", whole[:-1], snapshot_with(deep), snapshot_with(b'{"version":2}'), save({"x": X})):
        file.write_bytes(data)
        refusal(read_snapshot_file, file)
    file.write_bytes(whole)
    assert read_snapshot_file(file) == whole
    assert isinstance(parse(whole)[1], SnapshotScalars)


WITHIN_LIMITS = """
import json, resource, sys
from pathlib import Path
import psutil
from pipeline.errors import DataError
from pipeline.features.tables import TagTable
from pipeline.sources.kuairec import read_events
from pipeline.tools.checkpoint.snapshot_file import read_snapshot_file
from pipeline.tools.evaluate.arrays import read_arrays
from pipeline.tools.evaluate.libsvm import read_libsvm
from pipeline.tools.evaluate.table import read_table

readers = {
    ".npz": read_arrays, ".libsvm": read_libsvm, ".csv": lambda file: read_table(file, None),
    ".plays": read_events, ".tags": TagTable, ".safetensors": read_snapshot_file,
}
limit = psutil.Process().memory_info().data + 2**29
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
found = {}
for name in sys.argv[1:]:
    try:
        found[Path(name).name] = str(len(readers[Path(name).suffix](Path(name)).y))
    except DataError as error:
        found[Path(name).name] = str(error)
print(json.dumps(found))
"""
"""Reads files while the process may allocate half a gigabyte more than after its imports."""


def enlarge(file: Path, size: int) -> None:
    """Append a hole, which takes no space on the disk."""
    with file.open("r+b") as content:
        content.truncate(size)


@pytest.mark.slow
def test_files_of_any_size_are_refused_in_bounded_memory(tmp_path: Path) -> None:
    files = dict.fromkeys(("hole.npz", "hole.libsvm", "line.csv", "hole.plays", "hole.safetensors"), b"")
    files |= {"hole.csv": b"a,y\n", "hole.tags": b"video_id,feat\n"}
    files["header.safetensors"] = (2**33).to_bytes(8, "little")
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        enlarge(tmp_path / name, 12 * 10**9)
    header = json.dumps({"plain": {"dtype": "U8", "shape": [12 * 10**9], "data_offsets": [0, 12 * 10**9]}})
    huge = tmp_path / "huge.safetensors"
    huge.write_bytes(len(header).to_bytes(8, "little") + header.encode())
    enlarge(huge, 8 + len(header) + 12 * 10**9)
    small = tmp_path / "small.safetensors"
    small.write_bytes(b"")
    enlarge(small, 19 * 10**8)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 2**32 - 2, 0, 0)  # with a table of 4 GB
    with (tmp_path / "hole.npz").open("r+b") as hole:
        hole.seek(-len(end), os.SEEK_END)
        hole.write(end)
    archive(tmp_path / "rows.npz", {"X.npy": header_bytes((10**12, 4)), "y.npy": array_bytes(Y)})
    bomb = b"\x93NUMPY\x02\x00" + (10**9).to_bytes(4, "little") + bytes(10**8)
    archive(tmp_path / "bomb.npz", {"X.npy": bomb, "y.npy": array_bytes(Y)})
    zeros = array_bytes(np.zeros(10**8))
    unneeded = {"junk.npy": zeros, "X.npy": array_bytes(X), "y.npy": array_bytes(Y)}
    archive(tmp_path / "unneeded.npz", unneeded)
    names = [str(file) for file in sorted(tmp_path.iterdir())]
    done = subprocess.run(
        [sys.executable, "-c", WITHIN_LIMITS, *names],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = msgspec.json.decode(done.stdout)
    assert found.pop("unneeded.npz") == "3"
    assert len(found) == len(names) - 1
    for name, message in found.items():
        assert message.startswith(str(tmp_path / name)), message
        assert len(message) < LONGEST_MESSAGE


def test_numbers_are_checked_by_row_whatever_the_size_of_the_table(tmp_path: Path) -> None:
    rows = 25_000
    table = np.ones((rows, 2))
    table[20_003, 1] = np.inf
    labels = np.where(np.arange(rows) % 2, 1.0, -1.0)
    np.savez(tmp_path / "data.npz", X=table, y=labels)
    assert "row 20003 from 0: feature 2 is inf" in refusal(read_arrays, tmp_path / "data.npz")
    table[20_003, 1] = 5.0
    np.savez(tmp_path / "data.npz", X=table, y=labels)
    found: Dataset = read_arrays(tmp_path / "data.npz")
    assert np.array_equal(found.X, table)
