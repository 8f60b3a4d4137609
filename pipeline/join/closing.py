"""Find the order in which predictions get their outcomes, by their labels or as they expire, compiled."""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import ZERO, njit

Integers: TypeAlias = NDArray[np.int64]

NONE = -1
"""The label of an outcome that has none, and the target of a label whose prediction cannot expire."""


class Waiting(NamedTuple):
    """Predictions that wait for their label, before any message."""

    number: int
    """How many there are, not more than the most."""
    deadlines: Integers
    """Of those that may expire, the first by deadline and number; shape (k,), ascending."""
    complete: bool
    """Whether no other one may expire."""
    window: int
    """How long a prediction waits, in milliseconds."""
    most: int
    """How many may wait: beyond that, the first by deadline expires."""
    stream_time: int
    """In milliseconds."""


class Closings(NamedTuple):
    """The outcomes of merged messages, in their order."""

    messages: int
    """Messages up to one before which too much expires, or whose prediction has expired."""
    labels: Integers
    """The label of each outcome, `NONE` where the prediction expired."""
    targets: Integers
    """Where it expired, the row of the interaction, or one more than all of them for the first deadline."""
    outcomes_before: Integers
    """How many outcomes come before each interaction."""
    crowded_out: int
    """How many predictions expired because there was no room."""
    steps: int
    """Messages, and predictions that expired because they were overdue."""


def close_in_order(
    interaction_times: Integers,
    label_times: Integers,
    labels_before: Integers,
    targets: Integers,
    waiting: Waiting,
    max_steps: int,
) -> Closings:
    """Go through merged messages, and let expire what is overdue or has no room.

    When stream time moves, all predictions whose deadlines lie before it expire, by deadline and number. When
    a prediction has no room, the first of all by deadline and number expires.

    Parameters
    ----------
    interaction_times, label_times
        Times of the messages, shapes (n,) and (m,), in milliseconds.
    labels_before
        Labels that come before each interaction, shape (n,).
    targets
        The prediction of each label, shape (m,): the row of its interaction, which comes before it; or n and
        the place among the deadlines; or `NONE`.
    waiting
        The predictions that wait.
    max_steps
        Most messages and overdue predictions.

    Examples
    --------
    A label comes in time for the prediction that waits, and the new one expires before the next interaction.

    >>> waiting = Waiting(1, np.array([12]), True, window=10, most=5, stream_time=0)
    >>> found = close_in_order(
    ...     np.array([10, 30]), np.array([11]), np.array([0, 1]), np.array([2]), waiting, max_steps=9
    ... )
    >>> found.labels.tolist(), found.targets[1:].tolist(), found.outcomes_before.tolist(), found.steps
    ([0, -1], [0], [0, 2], 4)
    """
    n, m, k = len(interaction_times), len(label_times), len(waiting.deadlines)
    labels, expired = np.empty((2, n + m + k), dtype=np.int64)
    outcomes_before = np.empty(n, dtype=np.int64)
    messages, outcomes, crowded_out, steps = _close(
        interaction_times,
        label_times,
        labels_before,
        targets,
        *waiting,
        max_steps,
        labels,
        expired,
        outcomes_before,
    )
    return Closings(messages, labels[:outcomes], expired[:outcomes], outcomes_before, crowded_out, steps)


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    none = np.empty(0, dtype=np.int64)
    for complete in (False, True):
        close_in_order(none, none, none, none, Waiting(0, none, complete, 0, 0, 0), 0)


@njit(cache=True, nogil=True, allocates=True)
def _close(
    interaction_times: Integers,
    label_times: Integers,
    labels_before: Integers,
    targets: Integers,
    count: int,
    deadlines: Integers,
    complete: bool,
    window: int,
    most: int,
    stream_time: int,
    max_steps: int,
    labels: Integers,
    expired: Integers,
    outcomes_before: Integers,
) -> tuple[int, int, int, int]:
    """Write the outcomes; return the numbers of messages, outcomes, those without room, and steps."""
    n, m = len(interaction_times), len(label_times)
    closed = np.zeros(n + len(deadlines), dtype=np.bool_)
    opened = [(stream_time, n) for _ in range(0)]  # a heap of deadlines and rows
    i = j = outcomes = crowded_out = steps = 0
    first = ZERO
    while i + j < n + m:
        is_label = i == n or j < labels_before[i]
        time = label_times[j] if is_label else interaction_times[i]
        begin = outcomes
        while time > stream_time:
            first, row, deadline = _earliest(deadlines, closed, n, first, opened)
            if first == len(deadlines) and not complete:
                return i + j, begin, crowded_out, steps - (outcomes - begin)
            if row == NONE or deadline >= time:
                stream_time = time
                break
            closed[row] = True
            labels[outcomes], expired[outcomes] = NONE, row
            outcomes += 1
            steps += 1
            count -= 1
        if steps >= max_steps or (is_label and targets[j] != NONE and closed[targets[j]]):
            return i + j, begin, crowded_out, steps - (outcomes - begin)
        steps += 1
        if is_label:
            if targets[j] != NONE:
                closed[targets[j]] = True
            labels[outcomes], expired[outcomes] = j, NONE
            outcomes += 1
            count -= 1
            j += 1
            continue
        outcomes_before[i] = outcomes
        heappush(opened, (time + window, i))
        count += 1
        i += 1
        if count > most:
            first, row, _ = _earliest(deadlines, closed, n, first, opened)
            closed[row] = True
            labels[outcomes], expired[outcomes] = NONE, row
            outcomes += 1
            crowded_out += 1
            count -= 1
    return n + m, outcomes, crowded_out, steps


@njit(cache=True, nogil=True, allocates=True)
def _earliest(
    deadlines: Integers, closed: NDArray[np.bool_], n: int, first: int, opened: list[tuple[int, int]]
) -> tuple[int, int, int]:
    """Return the first place that is not closed, and the row that is due first, `NONE` without any."""
    while first < len(deadlines) and closed[n + first]:
        first += 1
    while len(opened) > 0 and closed[opened[0][1]]:
        heappop(opened)
    if first < len(deadlines) and (len(opened) == 0 or deadlines[first] <= opened[0][0]):
        return first, n + first, deadlines[first]
    if len(opened) > 0:
        return first, opened[0][1], opened[0][0]
    return first, NONE, 0
