"""A trial: one learner on one stream in one run. Its result, but for the time, follows from its key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

from research.harness.labelled import Labelled
from research.harness.learners import LearnerSpec
from research.harness.streams import Stream

Result: TypeAlias = dict[str, float]
"""Measures by name; mistakes, their kinds and ``majority`` are in percent."""
KeyColumns: TypeAlias = tuple[tuple[str, float | str], ...]
"""Names and values that identify a trial in an experiment, beside stream, learner, budget and run."""

WARM_UP = 2_000
"""Events for a learner of each kind before time is measured, so that code is compiled and loaded."""


class Trial(Protocol):
    """One learner on one stream in one run. It can be pickled."""

    @property
    def stream(self) -> str:
        """Name in the tables."""

    @property
    def learner(self) -> str:
        """Name in the tables."""

    @property
    def budget(self) -> int | None:
        """Budget of the learner; None if it has none."""

    @property
    def key_columns(self) -> KeyColumns:
        """Further names and values that identify the trial, except the run."""

    def key(self) -> Mapping[str, Any]:
        """Return all that decides the result, as an object for JSON."""

    def result(self) -> Result:
        """Run the trial and return its measures."""


@dataclass(frozen=True)
class StreamTrial:
    """One learner on a stream of labelled vectors.

    Attributes
    ----------
    row_stream
        Stream of rows.
    spec
        Learner and its options.
    run
        Number of the run; seeds the order of the stream and the learner.
    key_columns
        Further columns, see `Trial`.
    """

    row_stream: Stream
    spec: LearnerSpec
    run: int
    key_columns: KeyColumns = field(default=())

    @property
    def stream(self) -> str:
        return self.row_stream.name

    @property
    def learner(self) -> str:
        return self.spec.name

    @property
    def budget(self) -> int | None:
        return self.spec.budget

    def key(self) -> Mapping[str, Any]:
        return {"stream": self.row_stream.key(), "learner": self.spec.key(), "run": self.run}

    def result(self) -> Result:
        """Return ``mistakes`` (from the first event), ``mistakes_authors``, ``majority`` and ``seconds``."""
        data = _rows(self.row_stream, self.run)
        _warm_up(self.spec, data)
        result = self.spec.run_stream(data, self.run)
        return {
            "mistakes": 100.0 * result.mistake_rate,
            "mistakes_authors": 100.0 * result.authors_mistake_rate,
            "majority": 100.0 * data.majority,
            "seconds": result.seconds,
            **self.row_stream.measures(result),
        }


@lru_cache(maxsize=1)
def _rows(stream: Stream, run: int) -> Labelled:
    """Return a stream's rows, cached because consecutive trials share them."""
    return stream.rows(run)


_WARM: set[str] = set()
"""Kinds of learners that have run in this process."""


def _warm_up(spec: LearnerSpec, data: Labelled) -> None:
    if spec.kind not in _WARM:
        _WARM.add(spec.kind)
        spec.run_stream(Labelled(data.X[:WARM_UP], data.y[:WARM_UP]), 0)
