"""The order in which the records of a replay are sent, and the partition of each."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pipeline.kafka.partitioner import partition
from pipeline.sources.kuairec import ITEMS, Events

Integers = NDArray[np.int64]


def merge_by_time(timestamp: Integers, label_timestamp: Integers) -> Integers:
    """Merge interactions and their labels by time, as River's `stream.simulate_qa` does.

    Of records with the same time, labels come first, in the order of their interactions, but no label comes
    before its own interaction.

    Parameters
    ----------
    timestamp
        Times of the interactions, ascending, shape (n,), int64.
    label_timestamp
        Times of their labels, none before its interaction's, shape (n,), int64.

    Returns
    -------
    ndarray
        Order of the records, shape (2 n,), int64: i for interaction i, n + i for its label.

    Examples
    --------
    >>> merge_by_time(np.array([10, 20, 20]), np.array([20, 25, 20])).tolist()
    [0, 3, 1, 2, 5, 4]
    """
    count = len(timestamp)
    labels = np.argsort(label_timestamp, kind="stable")
    interactions_before = np.maximum(np.searchsorted(timestamp, label_timestamp[labels]), labels + 1)
    is_label = np.zeros(2 * count, dtype=bool)
    is_label[interactions_before + np.arange(count)] = True
    order = np.empty(2 * count, dtype=np.int64)
    order[is_label] = count + labels
    order[~is_label] = np.arange(count)
    return order


def order_of(events: Events) -> Integers:
    """Return the numbers of the records of events, in the order of `merge_by_time`.

    A slate's interaction has the number of the first of its items; the numbers of the others are left out,
    and so are those of labels that do not come.
    """
    frame, count = events.frame, len(events)
    times, label_times = frame["timestamp"], frame["label_timestamp"]
    order = merge_by_time(times.to_numpy(), label_times.fill_null(times).to_numpy())
    if ITEMS in frame.columns:
        order = order[(order >= count) | frame[ITEMS].is_not_null().to_numpy()[order % count]]
    if label_times.null_count():
        order = order[(order < count) | label_times.is_not_null().to_numpy()[order % count]]
    return order


class Schedule:
    """The records of a replay: event i's interaction is number i, its label number `len(events)` + i.

    Of a slate, whose items are events here, the first stands for the interaction: see `order_of`.

    Parameters
    ----------
    events
        Events to replay.
    partitions
        Number of partitions of each of the two input topics.
    key_column
        The column of the events whose value is their messages' key.
    """

    def __init__(self, events: Events, partitions: int, key_column: str = "user_id") -> None:
        self._key_column = key_column
        self.events = events
        self.partitions = partitions
        self.order = order_of(events)
        """Numbers of the records, in the order in which they are sent."""

    @cached_property
    def partition(self) -> Integers:
        """The partition of each event's two records, shape (n,)."""
        keys, position = np.unique(self.events.frame[self._key_column].to_numpy(), return_inverse=True)
        partitions = [partition(str(key).encode(), self.partitions) for key in keys.tolist()]
        return np.array(partitions, dtype=np.int64)[position]

    def records_by_partition(self) -> tuple[list[Integers], list[Integers]]:
        """Return the numbers of the records of each partition, in order: interactions, then labels."""
        count = len(self.events)
        return (
            self._by_partition(self.order[self.order < count]),
            self._by_partition(self.order[self.order >= count]),
        )

    def _by_partition(self, records: Integers) -> list[Integers]:
        partition = self.partition[records % len(self.events)] if len(records) else records
        return [records[partition == number] for number in range(self.partitions)]
