"""Files of examples: what is read, and the errors for files that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from pipeline.errors import ConfigError, DataError
from pipeline.tools.evaluate.arrays import read_arrays
from pipeline.tools.evaluate.dataset import Dataset
from pipeline.tools.evaluate.libsvm import read_libsvm
from pipeline.tools.evaluate.table import read_table

X = np.array([[0.5, 0.0, -2.0], [0.0, 1e-3, 0.0], [0.0, 0.0, 0.0], [3.0, 4.0, 5.0]])
Y = np.array([1.0, -1.0, -1.0, 1.0])


def assert_same(found: Dataset, X: np.ndarray, y: np.ndarray) -> None:
    assert np.array_equal(found.X, X)
    assert np.array_equal(found.y, y)
    assert found.X.dtype == found.y.dtype == np.float64


def write(folder: Path, text: str, name: str = "examples.txt") -> Path:
    file = folder / name
    file.write_text(text, newline="")
    return file


def sparse_arrays(**changes: Any) -> dict[str, Any]:
    sparse = csr_array(X)
    arrays = {
        "data": sparse.data,
        "indices": sparse.indices,
        "indptr": sparse.indptr,
        "shape": X.shape,
        "y": Y,
    }
    return arrays | changes


@pytest.mark.parametrize(
    "arrays",
    [
        {"X": X, "y": Y},
        {"X": X, "y": Y.astype(np.int8)},
        {"X": X, "y": Y > 0},
        sparse_arrays(),
    ],
    ids=["dense", "integer labels", "boolean labels", "sparse"],
)
def test_arrays_are_read_dense_or_sparse(arrays: dict[str, Any], tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", **arrays)
    assert_same(read_arrays(tmp_path / "data.npz"), X, Y)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Z": X}, "expected are the arrays X and y, or data, indices, indptr, shape and y; found: Z"),
        ({"X": X}, "the array y is missing"),
        ({"X": np.array([[{}]], dtype=object), "y": Y[:1]}, "not of shape .* and type object"),
        ({"X": X[0], "y": Y}, r"X has to be an array of 2 dimension\(s\)"),
        ({"X": X, "y": np.array(["a"] * 4)}, "y has to be an array of 1 .* not of shape .* type <U1"),
        ({"X": X, "y": Y[:3]}, "X has 4 rows, but y has 3 labels"),
        ({"X": X[:0], "y": Y[:0]}, "there is no example: 0 rows of 3 features"),
        ({"X": X, "y": 2 * Y}, "row 0 from 0: the label is 2; labels have to be -1 and 1, or 0 and 1"),
        ({"X": X, "y": np.array([1, -1, 0, 1])}, "row 2 from 0: the label is 0"),
        ({"X": np.where(X == 4.0, np.nan, X), "y": Y}, "row 3 from 0: feature 2 is nan"),
        ({"X": X * 1e200, "y": Y}, r"row 0 from 0: feature 1 is 5e\+199; numbers have to be finite"),
        (sparse_arrays(indices=[0, 2, 1, 0, 1, 9]), "do not form a matrix in compressed sparse row format"),
        (sparse_arrays(indptr=[0, 2, 3]), "do not form a matrix in compressed sparse row format"),
        (sparse_arrays(shape=(4, 10**9)), r"take 32.0 GB as a dense table; the limit is 2 GB"),
    ],
)
def test_arrays_that_do_not_fit_have_errors_of_their_own(
    arrays: dict[str, Any], message: str, tmp_path: Path
) -> None:
    np.savez(tmp_path / "data.npz", **arrays)
    with pytest.raises(DataError, match=message):
        read_arrays(tmp_path / "data.npz")


def test_what_is_no_archive_of_plain_arrays_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("none")
    with (tmp_path / "bare.npz").open("wb") as file:
        np.save(file, X)
    for name in ("text.npz", "bare.npz"):
        with pytest.raises(DataError, match=f"{name}: cannot be read as an .npz of plain arrays"):
            read_arrays(tmp_path / name)


@given(
    rows=st.lists(
        st.tuples(st.sampled_from([1, -1]), st.dictionaries(st.integers(1, 6), st.floats(-1e9, 1e9))),
        min_size=1,
        max_size=8,
    )
)
def test_libsvm_lines_are_read_as_they_were_written(
    rows: list[tuple[int, dict[int, float]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    columns = max((index for _, features in rows for index in features), default=0)
    if columns == 0:
        rows = [*rows, (1, {1: 2.0})]
        columns = 1
    expected = np.zeros((len(rows), columns))
    lines = ["# written by a test", ""]
    for number, (label, features) in enumerate(rows):
        for index, value in features.items():
            expected[number, index - 1] = value
        pairs = " ".join(f"{index}:{value!r}" for index, value in sorted(features.items()))
        lines.append(f"{label:+d} {pairs} # {number}")
    file = write(tmp_path_factory.mktemp("libsvm"), "\n".join(lines))
    assert_same(read_libsvm(file), expected, np.array([float(label) for label, _ in rows]))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("yes 1:2", "line 3: the label 'yes' is not a number"),
        ("2 1:2", "line 3: the label is 2; labels have to be -1 and 1"),
        ("1 1:2 3", "line 3: '3' is not INDEX:VALUE"),
        ("1 qid:4 1:2", "line 3: 'qid:4' is not INDEX:VALUE"),
        ("1 1:nan", "line 3: '1:nan' is not INDEX:VALUE"),
        ("1 1:1_0", "line 3: '1:1_0' is not INDEX:VALUE"),
        ("1 1:1e999", "line 3: feature 1 is inf; numbers have to be finite"),
        ("1 0:2", "line 3: index 0 after 0; indices begin at 1 and ascend"),
        ("1 2:1 2:3", "line 3: index 2 after 2"),
        ("1 99999999999:1", "take 1,600.0 GB as a dense table"),
    ],
)
def test_a_libsvm_line_that_cannot_be_read_is_named(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_libsvm(write(tmp_path, f"# comment\n-1 1:1\n{line}\n"))


@pytest.mark.parametrize("text", ["", "# nothing\n", "1\n-1\n"])
def test_a_libsvm_file_without_features_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no example"):
        read_libsvm(write(tmp_path, text))


def test_a_binary_file_is_not_libsvms_text(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(DataError, match="cannot be read as LIBSVM's text format"):
        read_libsvm(tmp_path / "data.bin")


def test_the_labels_of_a_csv_are_in_the_last_column_or_the_one_that_is_named(tmp_path: Path) -> None:
    last = write(tmp_path, "a,b,y\r\n0.5,1,1\r\n2,-3e2, 0\r\n\r\n", "last.csv")
    first = write(tmp_path, "\ufeffy,a,b\n1,0.5,1\n-1,2,-3e2\n", "first.csv")
    features, labels = np.array([[0.5, 1.0], [2.0, -300.0]]), np.array([1.0, -1.0])
    assert_same(read_table(last, None), features, labels)
    assert_same(read_table(first, "y"), features, labels)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("a,y\n", "there is no example: 0 rows"),
        ("y\n1\n", "there is no example: 1 rows of 0 features"),
        ("1,2,1\n3,4,0\n", "line 1: these are numbers; the first line has to name the columns"),
        ("a,a,y\n1,1,0\n", "line 1: 2 columns are called 'a'"),
        ("a,y\n1,1\nx,0\n", "line 3, column a: 'x' is not a number"),
        ("a,y\n1,1\n,0\n", "line 3, column a: '' is not a number"),
        ("a,y\n1,1\n\n2,0\n", "line 3, column a: '' is not a number"),
        ("a,b,y\n1,1,1\n1,1\n", "line 3, column y: '' is not a number"),
        ("a,y\n1,1\n2,0,3\n", "line 3: 3 values for 2 columns"),
        ("a,y\n1,1\ninf,0\n", "line 3: feature 1 is inf"),
        ("a,y\n1,1\n2,3\n", "line 3: the label is 3"),
    ],
)
def test_a_csv_that_cannot_be_read_is_reported_by_line_and_column(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        read_table(write(tmp_path, text, "data.csv"), None)


def test_a_column_that_is_not_there_is_a_wrong_option(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--label z: .* has no such column; its columns are a, y"):
        read_table(write(tmp_path, "a,y\n1,1\n", "data.csv"), "z")


@pytest.mark.parametrize("read", [read_arrays, read_libsvm, lambda file: read_table(file, None)])
def test_a_file_that_is_not_there_is_a_wrong_file(read: Callable[[Path], Dataset], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / "missing")
