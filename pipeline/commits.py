"""Transactions that the brokers are at while the next batch is worked on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from confluent_kafka import KafkaException, Producer

from pipeline.batch import Batch
from pipeline.deadline import Attempt
from pipeline.recovery import TIMEOUT, Start
from pipeline.saving import Receipt
from pipeline.task import Task


class Part(NamedTuple):
    """What one partition has to say in a transaction."""

    task: Task
    batch: Batch
    snapshot: bool
    """Whether the model's state is to be written too."""


Receipts: TypeAlias = tuple[Receipt | None, Receipt | None]
"""Of the first prediction and the first outcome of a batch, where there is one."""


class Commit:
    """A transaction that the brokers are at.

    Parameters
    ----------
    parts
        What it consists of.
    receipts
        Of each part's first prediction and first outcome.
    attempt
        Comes to where each part starts from after it.
    patience
        Seconds that it may take.
    """

    def __init__(
        self, parts: Sequence[Part], receipts: list[Receipts], attempt: Attempt[list[Start]], patience: float
    ) -> None:
        self.parts = parts
        self._receipts = receipts
        self._attempt = attempt
        self._end = time.monotonic() + patience

    @property
    def over(self) -> bool:
        """Whether it came about, or failed."""
        return self._attempt.over

    def wait(self) -> list[Start]:
        """Wait until it came about.

        Returns
        -------
        list of Start
            Of each part, where a restart would begin now.

        Raises
        ------
        KafkaException
            If it did not, or if that is not known.
        """
        starts = self._attempt.result(max(0.0, self._end - time.monotonic()))
        for part, (prediction, outcome) in zip(self.parts, self._receipts, strict=True):
            part.task.note_offsets(
                part.batch, prediction.offset if prediction else None, outcome.offset if outcome else None
            )
        return starts


class Commits:
    """At most one transaction that is under way.

    Parameters
    ----------
    producer
        Aborts a transaction that does not come about, so that nobody waits for its time to run out.
    """

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._commit: Commit | None = None

    @property
    def over(self) -> bool:
        """Whether there is one that came about, or failed."""
        return self._commit is not None and self._commit.over

    def begin(self, write: Callable[[], Commit]) -> None:
        """Have one written; the one before has to be ended."""
        assert self._commit is None, "a transaction is under way"
        try:
            self._commit = write()
        except KafkaException as error:
            self._abort(error)
            raise

    def end(self) -> list[tuple[Part, Start]]:
        """Wait for the one that is under way, if there is one: its parts, and where each would begin now.

        Raises
        ------
        KafkaException
            If it did not come about, or if that is not known.
        """
        if self._commit is None:
            return []
        try:
            starts = self._commit.wait()
        except KafkaException as error:
            self._abort(error)
            raise
        parts, self._commit = self._commit.parts, None
        return list(zip(parts, starts, strict=True))

    def forget(self) -> None:
        """Leave the one that is under way to itself."""
        self._commit = None

    def _abort(self, error: KafkaException) -> None:
        if error.args[0].txn_requires_abort():
            self._producer.abort_transaction(TIMEOUT)
