"""Streams of labelled vectors: a set in random order, and one with flipped labels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from forks.arrays import FloatArray
from research.harness.counting import StreamResult
from research.harness.labelled import Labelled


class Source(Hashable, Protocol):
    """Source of a labelled set. It can be hashed and pickled cheaply, since it does not hold the rows."""

    @property
    def name(self) -> str:
        """Name of the set."""

    @property
    def fingerprint(self) -> str:
        """Text that differs between different data."""

    def read(self) -> Labelled:
        """Return the rows in their own order."""


class Stream(Hashable, Protocol):
    """Rows in the order of a run. It can be hashed and pickled."""

    @property
    def name(self) -> str:
        """Name in the tables."""

    def key(self) -> Mapping[str, Any]:
        """Return all that decides the rows, as an object for JSON."""

    def rows(self, run: int) -> Labelled:
        """Return the rows of one run."""

    def measures(self, result: StreamResult) -> Mapping[str, float]:
        """Return further measures of such a stream, in percent."""


@dataclass(frozen=True)
class Permuted:
    """A set in random order, a different one in each run (FORKS, appendix H)."""

    source: Source

    @property
    def name(self) -> str:
        return self.source.name

    def key(self) -> Mapping[str, Any]:
        return {"set": self.source.name, "fingerprint": self.source.fingerprint}

    def rows(self, run: int) -> Labelled:
        return self.source.read().permuted(np.random.default_rng(run))

    def measures(self, result: StreamResult) -> Mapping[str, float]:  # noqa: ARG002 - part of the interface
        return {}


@dataclass(frozen=True)
class Flipped:
    """The adversarial stream of FORKS, section 5.2 (after SkeGD): instances repeated, labels flipped.

    Each block repeats one instance of the set ``rounds`` times; instances are drawn without replacement. In
    every second block, from the second on, the label is the opposite of the instance's own.

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
    """Rounds of a block whose mistakes are measured separately."""

    source: Source
    name: str
    blocks: int
    rounds: int
    file_order: bool = False

    def key(self) -> Mapping[str, Any]:
        fingerprint = {"set": self.source.name, "fingerprint": self.source.fingerprint}
        # The key has the entry only where it is true, so that results stored before it existed stay valid.
        file_order = {"filed": True} if self.file_order else {}
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
        """Return the mistakes in each of the `ROUNDS` of a block."""
        by_round: FloatArray = 100.0 * result.wrong.reshape(self.blocks, self.rounds).mean(axis=0)
        return {
            f"place_{round_number}": float(by_round[round_number - 1])
            for round_number in self.ROUNDS
            if round_number <= self.rounds
        }
