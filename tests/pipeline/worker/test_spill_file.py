from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pipeline.errors import StorageError
from pipeline.worker.spill_file import SpillFile, refuse_unwritable


def test_it_gives_back_what_was_written(tmp_path: Path) -> None:
    store = SpillFile(tmp_path)
    assert not list(tmp_path.iterdir())
    store.write(10, b"abc")
    store.write(5_000, b"de")
    assert (store.read(11, 2), store.read(5_000, 2)) == (b"bc", b"de")
    store.truncate(20)
    assert os.fstat(store.open()).st_size == 20
    store.truncate(30)
    assert os.fstat(store.open()).st_size == 20
    assert not list(tmp_path.iterdir()), "the file has no name"
    store.close()
    store.close()


def test_what_was_closed_begins_anew(tmp_path: Path) -> None:
    store = SpillFile(tmp_path)
    store.write(0, b"abc")
    store.close()
    assert store.read(0, 3) == b""
    store.close()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    refuse_unwritable(tmp_path)
    missing = tmp_path / "missing"
    with pytest.raises(StorageError, match=f"{missing} cannot be written: .*join.spill_folder"):
        refuse_unwritable(missing)
    store = SpillFile(missing)
    with pytest.raises(StorageError, match="cannot be written"):
        store.write(0, b"abc")


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is nearly full takes a part first."""
    taken: list[bytes] = []

    def pwrite(descriptor: int, data: bytes, at: int) -> int:
        if taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken.append(bytes(data[:2]))
        return 2

    monkeypatch.setattr(os, "pwrite", pwrite)
    store = SpillFile(tmp_path)
    with pytest.raises(StorageError, match=f"{tmp_path} has no room for it: No space left on device"):
        store.write(0, b"abc")
    assert taken == [b"ab"]
    store.close()


def test_a_file_that_cannot_be_made_shorter_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def truncate(descriptor: int, size: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "truncate", truncate)
    store = SpillFile(tmp_path)
    store.write(0, b"abc")
    with pytest.raises(StorageError, match=f"{tmp_path} cannot be written: Input/output error"):
        store.truncate(1)
    store.close()
