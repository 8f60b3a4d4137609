"""Which rows of a table no metric counts, why, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from pipeline.records.names import Fault
from pipeline.sources.kuairec import Events
from pipeline.task.plan import DeadLetter
from pipeline.task.state import CORRECTED
from pipeline.truncate import truncate

TOLERATED: Final = 0.01
"""Share of rows up to which lost rows do not fail an evaluation."""
MOST_REASONS: Final = 3
"""Reasons that are told, at most."""
MAX_EXAMPLE: Final = 300
"""Characters of an example, at most."""
DUPLICATES: Final = ("duplicate_interactions", "duplicate_labels")
"""Counters of messages that are dropped without a dead letter."""
REMEDIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ragged": "quote values that have separators in them",
        "no_id": "point the setting to a column that has an id in every row",
        "no_time": "look at time_unit, time_format and utc_offset beside the setting",
        "no_value": "look at labels.value; each signal has to be named in labels.signals",
        "no_number": "point the setting to a column of numbers",
        "no_feature": "say with the setting missing what stands for a value that is not there",
        "out_of_range": "look at the unit of the setting",
        "label_before_event": "look whether labels.time and interactions.time are of the same zone and unit",
        "differs_in_slate": "give each slate an event id of its own",
        "item_twice": "give each slate an event id of its own",
        "too_many_items": "set interactions.max_items",
        "second_label": "keep one label of an event, that which counts, in the file of labels",
        "no_event": "look at interactions.event_id and labels.event_id, and at the events of these labels",
        Fault.UNDECODABLE: "mend the field",
        Fault.INVALID: "mend the field, or the setting that points to it",
        Fault.WRONG_KEY: "look at the entities",
        Fault.FUTURE: "look at time_unit, and at join.max_jump and join.max_ahead",
        Fault.PAST: "look at time_unit, and at join.max_jump",
        Fault.ORPHAN: "look at the interactions of these labels, and at join.window",
        Fault.MISMATCHED: "point interactions.event_id and labels.event_id to a unique id",
        DUPLICATES[0]: "point interactions.event_id and labels.event_id to a unique id",
        DUPLICATES[1]: "point interactions.event_id and labels.event_id to a unique id",
    }
)
"""What to do, by reason."""


class LossReason(msgspec.Struct, frozen=True):
    """A reason why rows are lost."""

    reason: str
    """A reason of `pipeline.sources.rows.read_rows`, or the fault of a message."""
    count: int
    """Rows, or messages: an interaction that cannot be used takes its label with it."""
    example: str | None
    """The first of them."""
    remedy: str


class Losses(msgspec.Struct, frozen=True):
    """Rows that no metric counts."""

    rows: int
    """All rows, but those behind a limit."""
    lost: int
    """Rows with a label that was not joined. Those whose label comes after the window are not lost."""
    late: int
    """Rows whose label came after the window, and which were closed without one."""
    reasons: list[LossReason]
    """The most frequent ones, at most `MOST_REASONS`."""

    @property
    def too_many(self) -> bool:
        """Whether the metrics say little about the table.

        Examples
        --------
        >>> Losses(rows=100, lost=1, late=0, reasons=[]).too_many
        False
        >>> Losses(rows=100, lost=2, late=0, reasons=[]).too_many
        True
        """
        return self.lost > TOLERATED * self.rows


class DeadLetterCounts:
    """Counts dead letters by fault, and keeps the first of each."""

    def __init__(self) -> None:
        self.counts: Counter[Fault] = Counter()
        self.first: dict[Fault, DeadLetter] = {}

    def add(self, dead_letters: Iterable[DeadLetter]) -> None:
        """Count the next dead letters."""
        for each in dead_letters:
            self.counts[each.fault] += 1
            self.first.setdefault(each.fault, each)


def losses_of(events: Events, counters: Mapping[str, int], dead_letters: DeadLetterCounts) -> Losses:
    """Return the rows that are lost.

    Parameters
    ----------
    events
        The usable rows, and why others cannot be used.
    counters
        The counters of the run.
    dead_letters
        Its dead letters.
    """
    skipped, late = sum(events.skipped.values()), counters[Fault.LATE]
    joined = counters["labelled"] + late + counters.get(CORRECTED, 0)
    found = [
        LossReason(reason, count, events.examples.get(reason), REMEDIES[reason])
        for reason, count in events.skipped.items()
    ]
    found += [
        LossReason(fault, count, _example(dead_letters.first[fault]), REMEDIES[fault])
        for fault, count in dead_letters.counts.items()
        if fault != Fault.LATE
    ]
    found += [LossReason(name, counters[name], None, REMEDIES[name]) for name in DUPLICATES if counters[name]]
    # An orphan lost its interaction, and so is the consequence of another reason.
    found.sort(key=lambda each: (each.reason == Fault.ORPHAN, -each.count))
    lost = skipped + max(0, events.labels - joined)
    return Losses(skipped + len(events), lost, late, found[:MOST_REASONS])


def _example(dead_letter: DeadLetter) -> str:
    value = (dead_letter.source.value or b"").decode(errors="replace")
    return truncate(f"{dead_letter.reason} in {dead_letter.source.topic}: {value}", MAX_EXAMPLE)


def describe_losses(losses: Losses) -> str:
    """Return the losses as lines of text, the first of which says how many.

    Examples
    --------
    >>> reason = LossReason("no_time", 2, "row 7: interactions.time at /at is 'x'", "look at time_unit")
    >>> print(describe_losses(Losses(100, 2, 0, [reason])))
    2 of 100 rows (2.0%) are lost, and the metrics are those of the others alone:
      2 no time: row 7: interactions.time at /at is 'x': look at time_unit
    """
    share = losses.lost / max(1, losses.rows)
    lines = [
        f"{losses.lost:,} of {losses.rows:,} rows ({share:.1%}) are lost, and the metrics are those of the "
        "others alone:"
    ]
    for each in losses.reasons:
        parts = [f"  {each.count:,} {each.reason.replace('_', ' ')}", each.example, each.remedy]
        lines.append(": ".join(part for part in parts if part))
    return "\n".join(lines)
