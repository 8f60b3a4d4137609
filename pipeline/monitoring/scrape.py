"""What a scrape finds: the last metrics of the worker, and what is only known when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pipeline.config.settings import Config
from pipeline.kafka.access.errors import ERROR_CLASSES
from pipeline.monitoring.metrics import WorkerMetrics
from pipeline.monitoring.readiness import CODES, Reason, Vitals

RESTART_REASONS: Final = ("authorization", *ERROR_CLASSES, "timeout", "other")
"""Classes of errors that end sessions: see `pipeline.kafka.access.errors.error_class`."""
PARTITION_STATES: Final = ("closed", "restoring", "running", "kept")
"""The states of a partition: see `pipeline.worker.partition.PartitionState`."""


class Scrape(NamedTuple):
    """What a scrape finds."""

    worker: WorkerMetrics
    vitals: Vitals
    reasons: Sequence[Reason]
    """Why the worker is not ready."""
    now: float
    """The time of the scrape, by the monotonic clock."""
    config: Config
    info: Mapping[str, str]
    """What the worker is."""

    @property
    def ready(self) -> bool:
        """Whether the worker is ready."""
        return not self.reasons

    @property
    def not_ready(self) -> Mapping[str, bool]:
        """Whether each reason not to be ready is one now."""
        found = {reason.code for reason in self.reasons}
        return {code: code in found for code in CODES}

    @property
    def loop_age_seconds(self) -> float:
        """The seconds since the loop came round."""
        return self.now - self.vitals.beat

    @property
    def commit_age_seconds(self) -> float:
        """The seconds since the transaction under way began; 0 if there is none."""
        return 0.0 if self.vitals.commit_since is None else self.now - self.vitals.commit_since

    @property
    def since_commit_seconds(self) -> float | None:
        """The seconds since the last commit; None before the first."""
        return None if self.vitals.last_commit is None else self.now - self.vitals.last_commit

    @property
    def session_restarts(self) -> Mapping[str, int]:
        """The sessions that ended with an error, by each reason that there can be."""
        return {reason: self.worker.restarts.get(reason, 0) for reason in RESTART_REASONS}

    @property
    def partition_state(self) -> Mapping[int, Mapping[str, bool]]:
        """Whether a partition is in each state."""
        states = self.worker.states.items()
        return {number: {each: each == state for each in PARTITION_STATES} for number, state in states}

    @property
    def restore_records_left(self) -> Mapping[int, int]:
        """The records that are still to be read, by each partition that the worker has had."""
        return {number: self.worker.records_left.get(number, 0) for number in self.worker.states}

    def values(self, path: Sequence[str], labels: int) -> Iterator[tuple[tuple[str, ...], Any]]:
        """Yield values with the values of their labels; nothing where there is None.

        Parameters
        ----------
        path
            Attributes that lead to a value, from the scrape on. A mapping on the way, or at its end, has the
            values of a label for its keys.
        labels
            The number of labels.
        """
        yield from _values(self, path, labels)


def _values(found: Any, path: Sequence[str], labels: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    if labels and isinstance(found, Mapping):
        for key, each in found.items():
            for others, value in _values(each, path, labels - 1):
                yield (str(key), *others), value
    elif path and found is not None:
        yield from _values(getattr(found, path[0]), path[1:], labels)
    elif found is not None:
        yield (), found
