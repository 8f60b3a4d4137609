"""What a worker says of itself while it runs: its loop writes here, and HTTP requests read."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from pipeline.config.settings import Metrics
from pipeline.monitoring.client_statistics import ClientStatistics
from pipeline.monitoring.counts import PartitionCounts
from pipeline.monitoring.drift import DriftDetector
from pipeline.monitoring.explanations import LatestExplanations
from pipeline.monitoring.figures import PartitionFigures, RegistryFigures, WorkerFigures
from pipeline.monitoring.histogram import LONG_SECONDS, SECONDS, STEPS, Histogram
from pipeline.monitoring.history import History, sample_of
from pipeline.monitoring.quality import DriftFigures, QualityWindow, WindowFigures
from pipeline.monitoring.readiness import Failure, Restore, Vitals
from pipeline.task.batch import Batch
from pipeline.task.task import Task

REFRESH_INTERVAL: Final = 1.0
"""Seconds between two updates of the figures."""
WINDOW_INTERVAL: Final = 5.0
"""Seconds between two looks at the window of a partition: one is looked at in an update, in turn."""
STAGES: Final = ("poll", "tables", "restore", "shares", "process", "write", "wait")
"""Stages of the loop, in their order."""
LATENCIES_OF_BATCH: Final = 16
"""Predictions of a batch whose latency is observed, at most."""


class Monitor:
    """The figures and vitals of a worker.

    All methods are for the thread of the worker's loop. Other threads read `figures` and `vitals`, which are
    replaced as a whole and never changed. Without an address to serve them at, nothing is counted.

    Parameters
    ----------
    metrics
        Whether there is an address for them.

    Attributes
    ----------
    active
        Whether anything is counted.
    vitals
        What probes go by; always kept.
    figures
        The figures at the last update.
    """

    def __init__(self, metrics: Metrics) -> None:
        self.active = metrics.address is not None
        self.vitals = Vitals(time.monotonic())
        self.figures = WorkerFigures()
        self._updated = 0.0
        self._clients: dict[str, ClientStatistics] = {}
        self._counts: dict[int, PartitionCounts] = {}
        self._windows: dict[int, QualityWindow] = {}
        self._window_figures: dict[int, WindowFigures] = {}
        self._looked: dict[int, float] = {}
        """When the window of each partition was looked at."""
        self._alarms: Counter[int] = Counter()
        """Alarms of drift by partition, of the windows that were thrown away."""
        self._assigned_at: dict[int, float] = {}
        self._snapshot_sizes: dict[int, int] = {}
        self._in_flight: dict[int, Mapping[str, int]] = {}
        """The tasks' counters at the transaction under way, by partition."""
        self._restarts: Counter[str] = Counter()
        self._rebalances = self._transactions = self._failures = 0
        self._stages = {stage: Histogram(SECONDS) for stage in STAGES}
        self._batches = Histogram(STEPS)
        self._commits = Histogram(SECONDS)
        self._restores = Histogram(LONG_SECONDS)
        self._latencies = Histogram(LONG_SECONDS)
        self._explanations = LatestExplanations()
        self._history = History()

    def statistics_of(self, role: str) -> ClientStatistics | None:
        """Return what is to be given a new client's statistics; None if nothing is counted."""
        if not self.active:
            return None
        self._clients[role] = ClientStatistics()
        return self._clients[role]

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage of the loop."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._stages[name].observe(time.perf_counter() - begin)

    def beat(self) -> None:
        """Note that the loop goes on."""
        self.vitals = self.vitals._replace(beat=time.monotonic())

    def session_begun(self) -> None:
        """Note that the brokers have begun a session."""
        self.vitals = self.vitals._replace(connected=True, beat=time.monotonic())

    def session_ended(self) -> None:
        """Note that a session ends, with all that was under way in it."""
        if self.vitals.commit_since is not None:
            self._failures += 1
        self._in_flight.clear()
        self._explanations.forget_pending()
        self.vitals = self.vitals._replace(
            beat=time.monotonic(), connected=False, assigned=None, restoring={}, commit_since=None
        )
        self.figures = self.figures._replace(
            partitions={},
            records_left={},
            states=dict.fromkeys(self.figures.states, "closed"),
            clients={},
            transaction_failures=self._failures,
        )

    def session_failed(self, reason: str, text: str) -> None:
        """Note why the last session has ended.

        Parameters
        ----------
        reason
            The class of the error.
        text
            The error.
        """
        now = time.monotonic()
        self._restarts[reason] += 1
        self.vitals = self.vitals._replace(last_failure=Failure(reason, text, now), beat=now)
        self.figures = self.figures._replace(restarts=dict(self._restarts))

    def assigned(self, numbers: Sequence[int]) -> None:
        """Note an assignment of the group, whose partitions are to be restored."""
        now = time.monotonic()
        self._rebalances += 1
        self._explanations.forget_pending()
        self._assigned_at = dict.fromkeys(numbers, now)
        for gone in self._windows.keys() - set(numbers):
            self._alarms[gone] += self._windows.pop(gone).drift.alarms
        restoring = {number: Restore(0, now) for number in numbers}
        self.vitals = self.vitals._replace(assigned=tuple(numbers), restoring=restoring, beat=now)

    def revoked(self) -> None:
        """Note that the group has taken all partitions away."""
        self.vitals = self.vitals._replace(assigned=None, restoring={}, beat=time.monotonic())

    def restoring(self, left: Mapping[int, int]) -> None:
        """Note the records left by partition that is being restored."""
        before, now = self.vitals.restoring, time.monotonic()
        if before or left:
            found = {
                number: known
                if (known := before.get(number)) is not None and known.records_left == records
                else Restore(records, now)
                for number, records in left.items()
            }
            self.vitals = self.vitals._replace(restoring=found, beat=now)

    def running(self, task: Task, *, restored: bool) -> None:
        """Note that a task begins to process messages.

        Parameters
        ----------
        task
            The task.
        restored
            Whether it was restored, and not kept from an assignment before.
        """
        number = task.partition
        left = {other: each for other, each in self.vitals.restoring.items() if other != number}
        self.vitals = self.vitals._replace(restoring=left, beat=time.monotonic())
        if not self.active:
            return
        self._restores.observe(time.monotonic() - self._assigned_at.get(number, time.monotonic()))
        self._counts.setdefault(number, PartitionCounts()).begin_task(task.counters)
        if restored or number not in self._windows:
            if (former := self._windows.get(number)) is not None:
                self._alarms[number] += former.drift.alarms
            self._windows[number] = QualityWindow(task.model)
            self._snapshot_sizes.pop(number, None)

    def processed(self, parts: Sequence[tuple[Task, Batch]]) -> None:
        """Note what tasks have processed, while each model is as it was after its batch.

        Parameters
        ----------
        parts
            Tasks with their batches.
        """
        if self.active:
            self._explanations.look(parts)

    def committing(self, tasks: Sequence[Task]) -> None:
        """Note that a transaction with batches of these tasks begins."""
        self.vitals = self.vitals._replace(commit_since=time.monotonic())
        if self.active:
            self._in_flight = {task.partition: dict(task.counters) for task in tasks}

    def committed(self, seconds: float, waited: float) -> None:
        """Note that the transaction under way was committed.

        Parameters
        ----------
        seconds
            How long the brokers took.
        waited
            How long the loop has waited for that, having nothing else to do.
        """
        now = time.monotonic()
        self.vitals = self.vitals._replace(commit_since=None, last_commit=now, beat=now)
        self._transactions += 1
        self._commits.observe(seconds)
        self._stages["wait"].observe(waited)

    def count(self, task: Task, batch: Batch, now: int, *, snapshot_size: int | None) -> None:
        """Count the batch of a task, which was committed.

        Parameters
        ----------
        task
            The task.
        batch
            Its batch.
        now
            Milliseconds since 1970.
        snapshot_size
            Bytes of the snapshot that was written with it; None if none was.
        """
        if not self.active:
            return
        number, snapshot = task.partition, snapshot_size is not None
        records = 1 + (len(task.snapshot.chunks) if snapshot and task.snapshot is not None else 0)
        self._counts[number].add(batch, self._in_flight[number], records, snapshot=snapshot)
        if snapshot_size is not None:
            self._snapshot_sizes[number] = snapshot_size
        self._batches.observe(batch.steps)
        times = batch.predictions.timestamps
        for timestamp in times[:: len(times) // LATENCIES_OF_BATCH + 1].tolist():
            self._latencies.observe(max(0, now - timestamp) / 1000)
        since = task.earlier[-1].predictions if task.earlier else 0
        self._windows[number].add(batch.outcomes, task.model, since)
        self._explanations.committed(number, batch.predictions.first + batch.predictions.records)

    def update(
        self,
        states: Mapping[int, str],
        partitions: Callable[[Mapping[int, int]], Mapping[int, PartitionFigures]],
        registry: Callable[[], RegistryFigures | None],
    ) -> None:
        """Publish figures, if those before are a second old.

        Parameters
        ----------
        states
            The state of each partition that the worker has had.
        partitions
            Returns the figures of those that are running, given the sizes of their last snapshots.
        registry
            Returns the figures of the schema registry.
        """
        now = time.monotonic()
        if not self.active or now - self._updated < REFRESH_INTERVAL:
            return
        self._updated = now
        self._look_at_a_window(now, [number for number, state in states.items() if state == "running"])
        clients = {role: client.figures for role, client in self._clients.items()}
        self.figures = WorkerFigures(
            partitions=partitions(self._snapshot_sizes),
            states=states,
            records_left={number: each.records_left for number, each in self.vitals.restoring.items()},
            counts={number: counts.figures for number, counts in self._counts.items()},
            windows={
                number: found
                for number, found in self._window_figures.items()
                if states.get(number) == "running"
            },
            drift={number: self._drift(number) for number in self._windows.keys() | self._alarms.keys()},
            histograms={
                "stage_duration_seconds": {name: each.figures for name, each in self._stages.items()},
                "batch_steps": {"": self._batches.figures},
                "transaction_duration_seconds": {"": self._commits.figures},
                "restore_duration_seconds": {"": self._restores.figures},
                "prediction_latency_seconds": {"": self._latencies.figures},
            },
            transactions=self._transactions,
            transaction_failures=self._failures,
            rebalances=self._rebalances,
            restarts=dict(self._restarts),
            clients={role: found for role, found in clients.items() if found is not None},
            registry=registry(),
            explanations=self._explanations.figures,
            history=self._history.figures,
        )
        if self._history.due(now):
            self._history.add(now, sample_of(self.figures, time.time()))
            self.figures = self.figures._replace(history=self._history.figures)

    def _drift(self, number: int) -> DriftFigures:
        window = self._windows.get(number)
        found = DriftDetector() if window is None else window.drift
        return DriftFigures(found.evidence, found.threshold, found.alarms + self._alarms[number])

    def _look_at_a_window(self, now: float, numbers: Sequence[int]) -> None:
        """Look at the window that was looked at longest ago, unless that was a moment ago."""
        number = min(numbers, key=lambda each: self._looked.get(each, 0.0), default=None)
        if number is not None and now - self._looked.get(number, 0.0) >= WINDOW_INTERVAL:
            self._looked[number] = now
            self._window_figures[number] = self._windows[number].figures
