"""Mutated files through their readers."""

from __future__ import annotations

import io
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import numpy as np

from pipeline.errors import DataError
from pipeline.features.tables import TagTable
from pipeline.model.snapshot import pack
from pipeline.sources.kuairec import COLUMNS, read_events
from pipeline.tools.checkpoint.snapshot_file import read_snapshot_file
from pipeline.tools.evaluate.arrays import read_arrays
from pipeline.tools.evaluate.libsvm import read_libsvm
from pipeline.tools.evaluate.table import read_table
from tests.fuzz.mutations import mutated_bytes
from tests.support.builders import new_model

_FOLDER: Final = tempfile.TemporaryDirectory(prefix="forks-fuzz-")


def _archive() -> bytes:
    content = io.BytesIO()
    np.savez_compressed(content, X=np.arange(12.0).reshape(4, 3), y=np.array([1, -1, 1, -1]))
    return content.getvalue()


SUBJECTS: Final[tuple[tuple[str, Callable[[Path], object], bytes], ...]] = (
    ("data.npz", read_arrays, _archive()),
    ("data.libsvm", read_libsvm, b"+1 1:0.5 3:-2e-3\n-1 2:7 # comment\n"),
    ("data.csv", lambda file: read_table(file, None), b'a,"b",y\n0.5,1e3,1\n-2,.5,0\n'),
    ("plays.csv", read_events, ",".join(COLUMNS).encode() + b"\n1,2,30,40,5.5,0.75\n1,3,30,40,7,0.75\n"),
    ("tags.csv", TagTable, b'video_id,feat\n1,"[8, 2]"\n2,[3]\n'),
    ("model.safetensors", read_snapshot_file, pack(new_model())),
)
"""Name, reader and content of sound files."""


def fuzz(rng: Random) -> str:
    """Read a file that is changed at random."""
    name, read, content = rng.choice(SUBJECTS)
    file = Path(_FOLDER.name) / name
    file.write_bytes(mutated_bytes(rng, content))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy, about headers that an old Python wrote
        try:
            read(file)
        except DataError:
            return "refused"
    return "read"
