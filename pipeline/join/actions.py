"""What goes into the join loop (`pipeline.join.loop`), and the log of actions that comes out.

Functions of `njit` read these by position: this file counts as one of those whose code is compiled.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import read_only
from pipeline.records.places import flagged
from pipeline.records.texts import Texts

Bytes: TypeAlias = NDArray[np.uint8]
Kinds: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

NONE: Final = -1
"""No symbol, no prediction, no label; a closed event that is not remembered."""


class Message(IntEnum):
    """What the next message is."""

    INTERACTION = 0
    LABEL = 1
    REJECTED = 2
    """It cannot be used, and does not move stream time."""
    TIME = 3
    """It is none: stream time moves all the same."""


class Action(IntEnum):
    """What happens."""

    PREDICTED = 0
    """A row of an interaction is predicted."""
    LABELLED = 1
    """A prediction gets its label."""
    EXPIRED = 2
    """A prediction gets no label in time."""
    EVICTED = 3
    """A prediction gets no label, because there is no room for it to wait."""
    DUPLICATE_INTERACTION = 4
    DUPLICATE_LABEL = 5
    LATE = 6
    """A label comes after its prediction has expired."""
    MISMATCHED = 7
    """A label names other entities than its interaction."""
    EARLY = 8
    """A label comes before its interaction."""
    ORPHAN = 9
    """An early label waits no longer."""
    REJECTED = 10
    """A message cannot be used."""
    CORRECTED = 11
    """A prediction that was closed gets another label."""


class Limits(NamedTuple):
    """The settings of the join, and how many steps are left."""

    window: int
    """How long a prediction waits, in milliseconds."""
    early: int
    """How long a label waits."""
    most_pending: int
    """Predictions that may wait."""
    most_early: int
    """Bytes of early labels."""
    most_closed: int
    """Closed events that are remembered."""
    corrections: bool
    """Whether a later label of a closed event is an outcome of its own."""
    max_steps: int
    """Rows of interactions that are predicted, other messages, and, as time passes, predictions that expire
    and labels that are orphans."""
    max_outcomes: int
    """Outcomes of which it is known what other partitions share right before them."""


class Ids(NamedTuple):
    """JSON of ids, of n events: see `Texts`."""

    text: Bytes
    begins: Integers
    """Shape (1 + entities, n)."""
    ends: Integers

    @classmethod
    def of(cls, texts: Texts) -> Ids:
        """Return those of texts."""
        return cls(read_only(texts.text), texts.begins, texts.ends)


class Messages(NamedTuple):
    """Merged messages that can be used, with n rows of interactions, and m labels.

    An interaction has one row, or one for each item that was shown together.
    """

    kinds: Kinds
    """`Message` of each, shape (messages,)."""
    numbers: Integers
    """Its number among the interactions, among the labels, or among what cannot be used."""
    times: Integers
    """In milliseconds."""
    first_rows: Integers
    """The first row of each interaction, and behind them n; shape (interactions + 1,)."""
    interaction_symbols: Integers
    """The symbol of each row's event, shape (n,)."""
    label_symbols: Integers
    """That of each label's event, shape (m,)."""
    label_sizes: Integers
    """Bytes of each label's message."""
    label_values: Floats
    """The value of each label; it is read where labels are corrected."""
    interaction_ids: Ids
    """The JSON of the ids of each row."""
    label_ids: Ids
    """Those of each label."""


class Waiting(NamedTuple):
    """Entries of a table that these messages or their times can touch, and in which order they are due."""

    deadlines: Integers
    """Of each entry, in milliseconds."""
    symbols: Integers
    """The symbol of each entry's event, `NONE` if no message is of it."""
    order: Integers
    """The entries that may be due, by deadline and number."""
    complete: bool
    """Whether no other entry may be due."""
    size: int
    """What the table holds: entries, and of early labels their bytes."""


class Known(NamedTuple):
    """What the tables say of the events of these messages, by symbol, before any of them."""

    pending: Integers
    """The prediction that waits: n and its entry; `NONE` without one."""
    early: Integers
    """The label that waits: m and its entry; `NONE` without one."""
    closed_until: Integers
    """How long the closed event is remembered; `NONE` if it is not closed."""
    closed_at: Integers
    """The time of the label that closed it; `NONE` without one."""
    closed_due: Integers
    """When the prediction of the closed event was due. It is read where labels are corrected, as the next."""
    closed_values: Floats
    """The value of that label; NaN without one."""
    same_closed: Flags
    """Of each label: whether it names the entities of the closed event, shape (m,)."""
    same_pending: Flags
    """Of each label: whether it names the entities of the prediction that waits, shape (m,)."""
    same_early: Flags
    """Of each row: whether the label that waits names its entities, shape (n,)."""


class ActionLog(NamedTuple):
    """What happened, in order."""

    kinds: Kinds
    """`Action` of each, shape (actions,)."""
    sources: Integers
    """Of a label: its row, or m and the entry of one that waited. Of a prediction: its row. Of any other
    message: its number."""
    targets: Integers
    """The prediction: its row, or n and the entry of one that waited, or n, the number of entries that waited
    and the symbol of a closed event."""
    closed_gone: Flags
    """Which closed events are remembered no longer: of each outcome, as far as there is one, and then of each
    entry of the table. Those whose time has come are not named where there is room for all."""
    messages: int
    """How many messages were processed."""
    stream_time: int
    """After them, in milliseconds."""
    steps: int

    def of(self, *kinds: Action) -> Integers:
        """Return the places of actions of these kinds."""
        return flagged(_wanted(kinds)[self.kinds])


@cache
def _wanted(kinds: tuple[Action, ...]) -> Flags:
    """Return of each kind whether it is one of these."""
    return np.isin(np.arange(len(Action)), [*kinds])
