"""The papers' data sets in a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np

from pipeline.errors import DataError
from pipeline.sources.kuairec import Events, read_events, tables_beside
from pipeline.sources.kuairec_files import DEFAULT_MATRIX
from pipeline.tools.evaluate.arrays import read_arrays
from pipeline.tools.evaluate.libsvm import read_libsvm
from pipeline.tools.evaluate.plays import play_stream, tags_beside
from research.harness.counting import StreamResult
from research.harness.graphs import Graph, read_graph
from research.harness.labelled import Labelled

LIBSVM: Final = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html"
ORIGINS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "german": f"german.numer, as it is and not scaled, from {LIBSVM}",
        "svmguide3": f"svmguide3 from {LIBSVM}",
        "spambase": "Spambase from https://archive.ics.uci.edu/dataset/94/spambase",
        "cod-rna": f"cod-rna from {LIBSVM}",
        "w7a": f"w7a from {LIBSVM}",
        "ijcnn1": f"ijcnn1 from {LIBSVM}",
        "cora": "the largest connected part of Cora's citations, undirected, from https://linqs.org/datasets",
        "coauthor": "the graph of 1,711 co-authors of four fields of DBLP, https://dblp.org",
    }
)
"""Where to get each data set."""

GRAPH_ARRAYS: Final = "data, indices, indptr and shape (the adjacency matrix by rows) and labels"


@dataclass(frozen=True)
class SetFile:
    """A labelled data set in a file: a `research.harness.streams.Source`."""

    name: str
    path: Path
    fingerprint: str

    def read(self) -> Labelled:
        return _read(self.path, self.fingerprint)


@dataclass(frozen=True)
class PlaySource:
    """KuaiRec's plays in random order without label delay: a `research.harness.streams.Stream`.

    The columns are the running features of `pipeline`, computed anew for each order. The paper uses columns
    of users and videos instead, which need KuaiRec's table of daily statistics; samples of KuaiRec lack it.
    """

    folder: Path
    fingerprint: str

    @property
    def name(self) -> str:
        return "kuairec"

    def key(self) -> Mapping[str, Any]:
        return {"set": self.name, "fingerprint": self.fingerprint}

    def rows(self, run: int) -> Labelled:
        events = _events(self.folder, self.fingerprint)
        order = np.random.default_rng(run).permutation(len(events))
        permuted = replace(events, frame=events.frame[order])
        tags = tags_beside(self.folder)
        plays = play_stream(permuted, tags, "hinge", delayed=False, kind="running")
        return Labelled(plays.X, plays.labels)

    def measures(self, result: StreamResult) -> Mapping[str, float]:  # noqa: ARG002 - part of the interface
        return {}


@dataclass(frozen=True)
class GraphFile:
    """A graph in a file: a `research.harness.graphs.GraphSource`."""

    name: str
    path: Path
    fingerprint: str

    def read(self) -> Graph:
        try:
            return read_graph(self.path)
        except (OSError, ValueError, KeyError, TypeError, BadZipFile) as error:
            raise DataError(
                f"{self.path}: cannot be read; expected an .npz of {GRAPH_ARRAYS}: {error}"
            ) from error


@dataclass(frozen=True)
class DataFolder:
    """A folder with ``libsvm/``, ``kuairec/`` and ``graphs/``: a `research.experiments.Data`."""

    path: Path

    def labelled(self, name: str) -> SetFile:
        """Find a labelled set: ``libsvm/NAME.npz``, or LIBSVM's text in ``libsvm/NAME``.

        Raises
        ------
        DataError
            The file is missing; the message says where to get it.
        """
        candidates = [self.path / "libsvm" / f"{name}.npz", self.path / "libsvm" / name]
        for file in candidates:
            if file.is_file():
                return SetFile(name, file, fingerprint(file))
        raise DataError(
            f"{candidates[0]}: no such file. Get {ORIGINS[name]}, and put it there as an .npz of "
            f"X and y, or as LIBSVM's text into {candidates[1]}; --data names the folder that holds libsvm/"
        )

    def plays(self) -> PlaySource:
        """Find KuaiRec's plays: ``kuairec/small_matrix.csv``, and the tags of its videos beside it.

        Raises
        ------
        DataError
            The files are missing; the message says where to get them.
        """
        folder = self.path / "kuairec"
        matrix = folder / DEFAULT_MATRIX
        if not matrix.is_file():
            raise DataError(
                f"{matrix}: no such file. Get KuaiRec 2.0 from https://kuairec.com and put its data "
                f"there; --data names the folder that holds kuairec/"
            )
        return PlaySource(folder, fingerprint(matrix, *tables_beside(folder).values()))

    def graph(self, name: str) -> GraphFile:
        """Find a graph: ``graphs/NAME.npz``.

        Raises
        ------
        DataError
            The file is missing; the message says where to get it.
        """
        file = self.path / "graphs" / f"{name}.npz"
        if not file.is_file():
            raise DataError(
                f"{file}: no such file. Get {ORIGINS[name]}, and put it there as an .npz of "
                f"{GRAPH_ARRAYS}; --data names the folder that holds graphs/"
            )
        return GraphFile(name, file, fingerprint(file))


def fingerprint(*files: Path) -> str:
    """Return a hash of the files' bytes."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1)
def _events(folder: Path, _: str) -> Events:
    return read_events(folder)


@lru_cache(maxsize=1)
def _read(path: Path, _: str) -> Labelled:
    found = read_arrays(path) if path.suffix == ".npz" else read_libsvm(path)
    return Labelled(found.X, found.y)
