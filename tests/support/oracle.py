"""The delayed-label join, slow and plain: lists of all that ever happened, searched from the start."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias

from pipeline.config.tree import Join as JoinSettings
from pipeline.records.decoding import Poison
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction, WatchLabel
from tests.support.builders import Inputs
from tests.support.entries import Entry

Fate: TypeAlias = tuple[str, Id]
"""What became of a prediction, and its event."""


@dataclass
class Shown:
    """An interaction that was predicted."""

    record: Interaction
    closed: str | None = None
    closed_at: int = 0
    order: int = 0
    """How many were closed before it."""


@dataclass
class Story:
    """All that happened."""

    shown: list[Shown] = field(default_factory=list)
    outcomes: list[Fate] = field(default_factory=list)
    letters: list[tuple[str, str, int]] = field(default_factory=list)
    """Fault, topic and offset."""
    waiting: list[Entry] = field(default_factory=list)
    counters: Counter[str] = field(default_factory=Counter)


def merged(given: Inputs) -> list[Entry]:
    """Both inputs as one: by the largest time so far in the own input, labels first, then by offset.

    This is the order in which a merge takes them that always takes the smaller of two heads.
    """
    timed = []
    for first, entries in ((0, given.labels), (1, given.interactions)):
        times = [-1 if isinstance(each.record, Poison) else each.record.timestamp for each in entries]
        timed += [
            (time, first, entry.source.offset, entry)
            for time, entry in zip(accumulate(times, max), entries, strict=True)
        ]
    return [entry for *_, entry in sorted(timed, key=lambda each: each[:3])]


def story(given: Inputs, settings: JoinSettings) -> Story:
    """What the join has to make of the inputs, which hold no jumps."""
    result, now = Story(), -1
    for entry in merged(given):
        source, record = entry
        result.counters["labels" if source.topic == "watch-labels" else "interactions"] += 1
        if isinstance(record, Poison):
            _bury(result, entry, record.fault)
            continue
        if record.timestamp > now:
            now = record.timestamp
            _expire(result, settings, now)
            _lose_patience(result, settings, now)
        if isinstance(record, Interaction):
            _show(result, settings, record, now)
        else:
            _label(result, settings, entry, record, now)
    return result


def _expire(result: Story, settings: JoinSettings, now: int) -> None:
    late = [
        each for each in result.shown if not each.closed and each.record.timestamp + settings.window < now
    ]
    for each in sorted(late, key=lambda shown: shown.record.timestamp):
        _close(result, each, "expired", _deadline(each, settings))


def _deadline(shown: Shown, settings: JoinSettings) -> int:
    return shown.record.timestamp + settings.window


def _lose_patience(result: Story, settings: JoinSettings, now: int) -> None:
    def since(entry: Entry) -> tuple[int, int]:
        assert isinstance(entry.record, WatchLabel)
        return entry.record.timestamp, entry.source.offset

    for entry in sorted(result.waiting, key=since):
        too_long = since(entry)[0] + settings.early < now
        room = sum(len(each.source.key or b"") + len(each.source.value or b"") for each in result.waiting)
        if too_long or room > settings.early_bytes:
            result.waiting.remove(entry)
            _bury(result, entry, "orphan")


def _show(result: Story, settings: JoinSettings, record: Interaction, now: int) -> None:
    if _remembered(result, settings, record.event_id, now):
        result.counters["duplicate_interactions"] += 1
        return
    shown = Shown(record)
    result.shown.append(shown)
    result.counters["predictions"] += 1
    for entry in list(result.waiting):
        if not isinstance(entry.record, Poison) and entry.record.event_id == record.event_id:
            result.waiting.remove(entry)
            _join(result, shown, entry)
    waiting = [each for each in result.shown if not each.closed]
    if len(waiting) > settings.max_pending:
        result.counters["crowded_out"] += 1
        oldest = min(waiting, key=lambda each: each.record.timestamp)
        _close(result, oldest, "expired", _deadline(oldest, settings))


def _label(result: Story, settings: JoinSettings, entry: Entry, record: WatchLabel, now: int) -> None:
    shown = _remembered(result, settings, record.event_id, now)
    if shown and not shown.closed:
        _join(result, shown, entry)
    elif shown and shown.closed == "expired":
        _bury(result, entry, "late")
    elif shown or any(_event(each) == record.event_id for each in result.waiting):
        result.counters["duplicate_labels"] += 1
    else:
        result.counters["early"] += 1
        result.waiting.append(entry)
        _lose_patience(result, settings, now)


def _event(entry: Entry) -> Id:
    assert not isinstance(entry.record, Poison)
    return entry.record.event_id


def _join(result: Story, shown: Shown, entry: Entry) -> None:
    record = entry.record
    assert isinstance(record, WatchLabel)
    if (record.user_id, record.video_id) != (shown.record.user_id, shown.record.video_id):
        _bury(result, entry, "mismatched")
    else:
        _close(result, shown, "labelled", record.timestamp)


def _close(result: Story, shown: Shown, how: str, when: int) -> None:
    shown.closed, shown.closed_at, shown.order = how, when, len(result.outcomes)
    result.counters[how] += 1
    result.outcomes.append((how, shown.record.event_id))


def _bury(result: Story, entry: Entry, fault: str) -> None:
    result.counters[fault] += 1
    result.letters.append((fault, entry.source.topic, entry.source.offset))


def _remembered(result: Story, settings: JoinSettings, event_id: Id, now: int) -> Shown | None:
    for each in reversed(result.shown):
        if each.record.event_id == event_id and (not each.closed or _in_mind(result, settings, each, now)):
            return each
    return None


def _in_mind(result: Story, settings: JoinSettings, shown: Shown, now: int) -> bool:
    later = [each for each in result.shown if each.closed and _closed(each) > _closed(shown)]
    return shown.closed_at + settings.window >= now and len(later) < settings.max_closed


def _closed(shown: Shown) -> tuple[int, int]:
    return shown.closed_at, shown.order
