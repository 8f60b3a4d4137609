"""What learners play: a set in random order, and the adversary's game."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from forks.arrays import FloatArray
from research.harness.counting import StreamResult
from research.harness.labelled import Labelled


class Source(Hashable, Protocol):
    """Where a set comes from. It can be hashed and pickled, so it holds no rows itself."""

    @property
    def name(self) -> str:
        """Of the set."""

    @property
    def fingerprint(self) -> str:
        """Another one for other data."""

    def read(self) -> Labelled:
        """Return the rows in their own order."""


class Stream(Hashable, Protocol):
    """Rows in the order in which a run shows them. It can be hashed and pickled."""

    @property
    def name(self) -> str:
        """Name in the tables."""

    def key(self) -> Mapping[str, Any]:
        """Return all that decides what the rows are, as JSON can hold it."""

    def rows(self, run: int) -> Labelled:
        """Return the rows of one run."""

    def measures(self, result: StreamResult) -> Mapping[str, float]:
        """Return what else is measured on such a stream, in percent."""


@dataclass(frozen=True)
class Permuted:
    """A set in random order, another one in each run (FORKS, appendix H)."""

    source: Source

    @property
    def name(self) -> str:
        return self.source.name

    def key(self) -> Mapping[str, Any]:
        return {"set": self.source.name, "fingerprint": self.source.fingerprint}

    def rows(self, run: int) -> Labelled:
        return self.source.read().permuted(np.random.default_rng(run))

    def measures(self, result: StreamResult) -> Mapping[str, float]:  # noqa: ARG002 - the interface of streams
        return {}


@dataclass(frozen=True)
class Flipped:
    """The adversary's game of FORKS, section 5.2 (after SkeGD): instances repeated, labels flipped.

    Each block is one instance of the set, drawn without repetition, shown ``rounds`` times; in each even
    block (the second is the first of them) the label is the opposite of the instance's own.

    Attributes
    ----------
    source
        Set of the instances, with at least ``blocks`` rows.
    name
        Name in the tables.
    blocks
        Number of blocks, b in the paper.
    rounds
        Number of rounds in a block, r in the paper.
    file_order
        Whether each run uses the set's first rows in their own order, without drawing any.
    """

    ROUNDS: ClassVar = (1, 2, 3, 5, 10)
    """Places in a block whose mistakes are told apart."""

    source: Source
    name: str
    blocks: int
    rounds: int
    file_order: bool = False

    def key(self) -> Mapping[str, Any]:
        fingerprint = {"set": self.source.name, "fingerprint": self.source.fingerprint}
        file_order = (
            {"filed": True} if self.file_order else {}
        )  # results that were there before know nothing of it
        return fingerprint | {"blocks": self.blocks, "rounds": self.rounds} | file_order

    def rows(self, run: int) -> Labelled:
        data = self.source.read()
        drawn = np.random.default_rng(run).choice(len(data.y), self.blocks, replace=False)
        chosen = np.arange(self.blocks) if self.file_order else drawn
        flips = np.where(np.arange(1, self.blocks + 1) % 2 == 0, -1.0, 1.0)
        return Labelled(
            np.repeat(data.X[chosen], self.rounds, axis=0),
            np.repeat(data.y[chosen] * flips, self.rounds, axis=0),
        )

    def measures(self, result: StreamResult) -> Mapping[str, float]:
        """Return mistakes by the place within a block."""
        by_round: FloatArray = 100.0 * result.wrong.reshape(self.blocks, self.rounds).mean(axis=0)
        return {
            f"place_{round_number}": float(by_round[round_number - 1])
            for round_number in self.ROUNDS
            if round_number <= self.rounds
        }
