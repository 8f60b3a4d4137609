"""What a worker says of itself while it runs: its loop writes here, and HTTP requests read."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from pipeline.config.settings import Metrics
from pipeline.model.model import Model
from pipeline.monitoring.client_statistics import ClientStatistics
from pipeline.monitoring.counts import Counts
from pipeline.monitoring.drift import DriftDetector
from pipeline.monitoring.explanations import LatestExplanations
from pipeline.monitoring.histogram import LONG_SECONDS, SECONDS, STEPS, Histogram
from pipeline.monitoring.history import INTERVAL, SAMPLES, sample_of
from pipeline.monitoring.metrics import PartitionMetrics, RegistryMetrics, WorkerMetrics
from pipeline.monitoring.quality import DriftMetrics, QualityWindow, WindowMetrics
from pipeline.monitoring.readiness import Failure, Restore, Vitals
from pipeline.task.batch import Batch
from pipeline.task.task import Task

REFRESH_INTERVAL: Final = 1.0
"""Seconds between two updates of the metrics."""
WINDOW_INTERVAL: Final = 5.0
"""Seconds between two looks at the window of a partition: one is looked at in an update, in turn."""
STAGES: Final = ("poll", "tables", "restore", "shares", "process", "write", "wait")
"""Stages of the loop, in their order."""
LATENCIES_OF_BATCH: Final = 16
"""Predictions of a batch whose latency is observed, at most."""


class _Partition:
    """What is counted of a partition that has run, from task to task."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.window: QualityWindow | None = None
        """None while the worker does not have the partition."""
        self.quality: WindowMetrics | None = None
        """That of the window when it was looked at last."""
        self.looked_at = -math.inf
        self.counted: Mapping[str, int] = {}
        """The task's counters up to which all is counted."""
        self.in_flight: Mapping[str, int] = {}
        """The task's counters at the transaction under way."""
        self.snapshot_size: int | None = None
        self._alarms = 0
        """Alarms of drift in windows that were thrown away."""

    def begin_window(self, model: Model) -> None:
        """Begin a window for the model of a task that was restored."""
        self.end_window()
        self.window, self.snapshot_size = QualityWindow(model), None

    def end_window(self) -> None:
        """Throw the window away."""
        if self.window is not None:
            self._alarms += self.window.drift.alarms
            self.window = None

    @property
    def drift(self) -> DriftMetrics:
        """What the detector of drift has found."""
        found = DriftDetector() if self.window is None else self.window.drift
        return DriftMetrics(found.evidence, found.threshold, found.alarms + self._alarms)


class Monitor:
    """The metrics and vitals of a worker.

    All methods are for the thread of the worker's loop. Other threads read `metrics` and `vitals`, which are
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
    metrics
        The metrics at the last update.
    """

    def __init__(self, metrics: Metrics) -> None:
        self.active = metrics.address is not None
        self.vitals = Vitals(time.monotonic())
        self.metrics = WorkerMetrics()
        self._updated = self._sampled = -math.inf
        self._clients: dict[str, ClientStatistics] = {}
        self._partitions: defaultdict[int, _Partition] = defaultdict(_Partition)
        self._assigned_at: dict[int, float] = {}
        self._restarts: Counter[str] = Counter()
        self._rebalances = self._transactions = self._failures = 0
        self._stages = dict.fromkeys(STAGES, Histogram.empty(SECONDS))
        self._batches = Histogram.empty(STEPS)
        self._commits = Histogram.empty(SECONDS)
        self._restores = self._latencies = Histogram.empty(LONG_SECONDS)
        self._explanations = LatestExplanations()

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
            self._stages[name] = self._stages[name].observe(time.perf_counter() - begin)

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
        self._explanations.forget_pending()
        self.vitals = self.vitals._replace(
            beat=time.monotonic(), connected=False, assigned=None, restoring={}, commit_since=None
        )
        self.metrics = self.metrics._replace(
            partitions={},
            records_left={},
            states=dict.fromkeys(self.metrics.states, "closed"),
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
        self.metrics = self.metrics._replace(restarts=dict(self._restarts))

    def assigned(self, numbers: Sequence[int]) -> None:
        """Note an assignment of the group, whose partitions are to be restored."""
        now = time.monotonic()
        self._rebalances += 1
        self._explanations.forget_pending()
        self._assigned_at = dict.fromkeys(numbers, now)
        for gone in self._partitions.keys() - set(numbers):
            self._partitions[gone].end_window()
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
        partition, now = self._partitions[number], time.monotonic()
        self._restores = self._restores.observe(now - self._assigned_at.get(number, now))
        partition.counted = dict(task.counters)
        if restored or partition.window is None:
            partition.begin_window(task.model)

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
            for task in tasks:
                self._partitions[task.partition].in_flight = dict(task.counters)

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
        self._commits = self._commits.observe(seconds)
        self._stages["wait"] = self._stages["wait"].observe(waited)

    def count(self, task: Task, batch: Batch, now: int, *, snapshot_size: int | None, cut: int = 0) -> None:
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
        cut
            How many of its dead letters were cut.
        """
        if not self.active:
            return
        partition = self._partitions[task.partition]
        snapshot, before = snapshot_size is not None, partition.counted
        after = partition.in_flight.items()
        counted = {name: n - before.get(name, 0) for name, n in after if n != before.get(name, 0)}
        records = 1 + (len(task.snapshot.chunks) if snapshot and task.snapshot is not None else 0)
        partition.counts = partition.counts.add(batch, counted, records, snapshot=snapshot, cut=cut)
        partition.counted = partition.in_flight
        if snapshot:
            partition.snapshot_size = snapshot_size
        self._batches = self._batches.observe(batch.steps)
        times = batch.predictions.timestamps
        some = times[:: len(times) // LATENCIES_OF_BATCH + 1].tolist()
        self._latencies = self._latencies.observe(*(max(0, now - timestamp) / 1000 for timestamp in some))
        since = task.earlier[-1].predictions if task.earlier else 0
        if partition.window is not None:
            partition.window.add(batch.outcomes, task.model, since)
        self._explanations.committed(task.partition, batch.predictions.first + batch.predictions.records)

    def update(
        self,
        states: Mapping[int, str],
        partitions: Callable[[Mapping[int, int]], Mapping[int, PartitionMetrics]],
        registry: Callable[[], RegistryMetrics | None],
    ) -> None:
        """Publish metrics, if those before are a second old.

        Parameters
        ----------
        states
            The state of each partition that the worker has had.
        partitions
            Returns the metrics of those that are running, given the sizes of their last snapshots.
        registry
            Returns the metrics of the schema registry.
        """
        now = time.monotonic()
        if not self.active or now - self._updated < REFRESH_INTERVAL:
            return
        self._updated = now
        counted = self._partitions.items()
        running = {number: each for number, each in counted if states.get(number) == "running"}
        _look_at_a_window(now, running.values())
        sizes = {number: each.snapshot_size for number, each in counted if each.snapshot_size is not None}
        clients = {role: client.metrics for role, client in self._clients.items()}
        self.metrics = WorkerMetrics(
            partitions=partitions(sizes),
            states=states,
            records_left={number: each.records_left for number, each in self.vitals.restoring.items()},
            counts={number: each.counts for number, each in counted},
            windows={number: each.quality for number, each in running.items() if each.quality is not None},
            drift={number: each.drift for number, each in counted},
            stage_duration_seconds=dict(self._stages),
            batch_steps=self._batches,
            transaction_duration_seconds=self._commits,
            restore_duration_seconds=self._restores,
            prediction_latency_seconds=self._latencies,
            transactions=self._transactions,
            transaction_failures=self._failures,
            rebalances=self._rebalances,
            restarts=dict(self._restarts),
            clients={role: found for role, found in clients.items() if found is not None},
            registry=registry(),
            explanations=self._explanations.predictions,
            history=self.metrics.history,
        )
        if now - self._sampled >= INTERVAL:
            self._sampled = now
            history = (*self.metrics.history, sample_of(self.metrics, time.time()))
            self.metrics = self.metrics._replace(history=history[-SAMPLES:])


def _look_at_a_window(now: float, partitions: Iterable[_Partition]) -> None:
    """Look at the window that was looked at longest ago, unless that was a moment ago."""
    found = min(partitions, key=lambda each: each.looked_at, default=None)
    if found is not None and found.window is not None and now - found.looked_at >= WINDOW_INTERVAL:
        found.looked_at, found.quality = now, found.window.measure()
