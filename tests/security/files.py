"""Files that are damaged, or that claim to be larger than any memory."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.lib import format as npy

from tests.security.refusal import Endpoint, Refusal, refused

NOWHERE: Final = Endpoint({"bootstrap.servers": "127.0.0.1:1"})
"""Reading a file needs no cluster."""
LABELS: Final = np.array([1.0, -1.0, 1.0])


def refusals(folder: Path) -> Iterator[Refusal]:
    """Evaluate a learner on each of the `FILES`."""
    for case, (name, write) in FILES.items():
        file = folder / name
        write(file)
        found = refused(case, ("evaluate", str(file)), NOWHERE, folder)
        yield found._replace(message=found.message.replace(str(file), name))
        file.unlink()


def _archive(file: Path, **members: bytes) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as content:
        for name, data in members.items():
            content.writestr(f"{name}.npy", data)


def _array(array: object) -> bytes:
    content = io.BytesIO()
    npy.write_array(content, np.asarray(array))
    return content.getvalue()


def _header(shape: tuple[int, ...]) -> bytes:
    content = io.BytesIO()
    npy.write_array_header_1_0(content, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return content.getvalue()


def _patched(file: Path, local: int, table: int, value: bytes) -> None:
    """Change a field of the first member, in its own header and in the table of contents."""
    _archive(file, X=_array(np.eye(3)), y=_array(LABELS))
    data = bytearray(file.read_bytes())
    for begin in (local, data.index(b"PK\x01\x02") + table):
        data[begin : begin + len(value)] = value
    file.write_bytes(bytes(data))


def _corrupt(file: Path) -> None:
    _archive(file, X=_array(np.random.default_rng(0).normal(size=(3, 9_000))), y=_array(LABELS))
    data = bytearray(file.read_bytes())
    data[100_000:100_100] = bytes(100)
    file.write_bytes(bytes(data))


def _infinite(file: Path) -> None:
    sparse = {
        "data": np.ones(2),
        "indices": [0, 1],
        "indptr": [0, 1, 1, 2],
        "shape": [np.inf, 2.0],
        "y": LABELS,
    }
    _archive(file, **{name: _array(array) for name, array in sparse.items()})


def _hole(file: Path) -> None:
    with file.open("wb") as content:
        content.truncate(12 * 10**9)


FILES: Final[dict[str, tuple[str, Callable[[Path], object]]]] = {
    "compressed data are damaged": ("data.npz", _corrupt),
    "encrypted member": ("data.npz", lambda file: _patched(file, 6, 8, b"\x01\x00")),
    "unknown compression": ("data.npz", lambda file: _patched(file, 8, 10, b"\x63\x00")),
    "bad header of an array": (
        "data.npz",
        lambda file: _archive(file, X=b"\x93NUMPY\x01\x00\x10\x00((((((((((((((((", y=_array(LABELS)),
    ),
    "member that is no array": ("data.npz", lambda file: _archive(file, X=b"text", y=_array(LABELS))),
    "header of 10^12 rows": (
        "data.npz",
        lambda file: _archive(file, X=_header((10**12, 4)), y=_array(LABELS)),
    ),
    "infinite shape": ("data.npz", _infinite),
    "100,000 columns": (
        "data.npz",
        lambda file: _archive(file, X=_array(np.ones((3, 100_000))), y=_array(LABELS)),
    ),
    "index of 5,000 digits": ("data.libsvm", lambda file: file.write_text(f"1 {'9' * 5_000}:1\n")),
    "line of 16 MB": ("data.libsvm", lambda file: file.write_text("1 " + "1" * 2**24)),
    "field of 50 MB": ("data.csv", lambda file: file.write_text(f"a,y\n{'x' * 50_000_000},1\n")),
    "field of 1 MB": ("data.csv", lambda file: file.write_text(f"a,y\n{'x' * 10**6},1\n")),
    "12 GB of zeros as text": ("data.libsvm", _hole),
    "12 GB of zeros as an archive": ("data.npz", _hole),
    "JSON in place of a table": ("data.csv", lambda file: file.write_text(json.dumps({"a": [1]}))),
}
"""Name and content of files, by what is wrong with them."""
