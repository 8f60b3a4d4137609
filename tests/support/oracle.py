"""The delayed-label join, slow and plain: lists of all that ever happened, searched from the start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias

from pipeline.config.settings import Join as JoinSettings
from pipeline.records.decoding import RejectedRecord
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction, Label, Slate
from pipeline.records.names import CLOCK_FAULTS, Fault
from pipeline.task.input_clock import JUDGES
from tests.support.builders import Inputs
from tests.support.entries import Entry

Event: TypeAlias = Id | tuple[Id, Id]
"""An event, or with slates an event and a video."""
Disposition: TypeAlias = tuple[str, Event]
"""What became of a prediction, and its event."""


@dataclass
class PredictedInteraction:
    """An interaction that was predicted."""

    record: Interaction
    closed: str | None = None
    closed_at: int = 0
    order: int = 0
    """How many were closed before it."""


@dataclass
class ExpectedRun:
    """All that happened."""

    predicted: list[PredictedInteraction] = field(default_factory=list)
    outcomes: list[Disposition] = field(default_factory=list)
    dead_letters: list[tuple[str, str, int]] = field(default_factory=list)
    """Fault, topic and offset."""
    waiting: list[Entry] = field(default_factory=list)
    counters: Counter[str] = field(default_factory=Counter)
    slates: bool = False
    """Whether interactions are slates."""

    def event(self, record: Interaction | Label) -> Event:
        """What a label has in common with its interaction."""
        return (record.event_id, record.ids[1]) if self.slates else record.event_id


def verdicts(times: Sequence[int], settings: JoinSettings, unconfirmed: str = "waits") -> list[str]:
    """Return what becomes of the messages of an input: "accepted", "future", "past", or "waits" for the next.

    Those that cannot be used have a time of -1, and are "unusable". A jump that no message confirms
    or refutes is `unconfirmed`.
    """
    found: list[str] = []
    for number, time in enumerate(times):
        clock, behind = None, 0
        for verdict, other in zip(found, times[:number], strict=True):
            if verdict == "accepted":
                behind = max(0, behind - 1)
                if clock is not None and other < clock - settings.max_behind:
                    clock, behind = other, 0
                clock = other if clock is None else max(clock, other)
            behind += verdict == "past"
        following = [other for other in times[number + 1 :] if other >= 0][:JUDGES]
        if "waits" in found:
            found.append("waits")
        elif time < 0:
            found.append("unusable")
        elif clock is None or clock - settings.max_behind <= time <= clock + settings.max_jump:
            found.append("accepted")
        elif time < clock:
            found.append("past" if behind < JUDGES else "accepted")
        else:
            confirming = sum(other >= time - settings.max_jump for other in following)
            behind_all = sum(other < clock - settings.max_behind for other in following)
            refuting = len(following) - confirming - behind_all
            certain = len(following) == JUDGES or max(confirming, refuting) > JUDGES // 2
            if not certain and unconfirmed == "waits":
                found.append("waits")
            elif confirming or refuting or certain:
                found.append("accepted" if confirming > refuting else "future")
            else:
                refused = [
                    other
                    for verdict, other in zip(found, times[:number], strict=True)
                    if verdict in {"future", "accepted"}
                ]
                last = next((v for v in reversed(found) if v in {"future", "accepted"}), "")
                again = last == "future" and refused[-1] <= time + settings.max_jump
                found.append("accepted" if again else unconfirmed)
    return found


def _judged(entries: Sequence[Entry], settings: JoinSettings) -> list[Entry]:
    """Return the messages of an input that has ended, some of which are refused for their time."""
    times = [-1 if isinstance(each.record, RejectedRecord) else each.record.timestamp for each in entries]
    return [
        entry if verdict not in {*CLOCK_FAULTS} else entry._replace(record=RejectedRecord(Fault(verdict), ""))
        for entry, verdict in zip(entries, verdicts(times, settings, "accepted"), strict=True)
    ]


def merged_entries(given: Inputs, settings: JoinSettings) -> list[Entry]:
    """Both inputs as one: by the largest time so far in the own input, labels first, then by offset.

    This is the order in which a merge takes them that always takes the smaller of two heads.
    """
    timed = []
    for first, read in ((0, given.labels), (1, given.interactions)):
        entries = _judged(read, settings)
        times = [-1 if isinstance(each.record, RejectedRecord) else each.record.timestamp for each in entries]
        timed += [
            (time, first, entry.source.offset, entry)
            for time, entry in zip(accumulate(times, max), entries, strict=True)
        ]
    return [entry for *_, entry in sorted(timed, key=lambda each: each[:3])]


def expected_run(given: Inputs, settings: JoinSettings, *, slates: bool = False) -> ExpectedRun:
    """Return what the join has to do with inputs."""
    result, now = ExpectedRun(slates=slates), -1
    for entry in merged_entries(given, settings):
        source, record = entry.source, entry.record
        result.counters["labels" if source.topic == "watch-labels" else "interactions"] += 1
        if isinstance(record, RejectedRecord):
            _reject(result, entry, record.fault)
            continue
        if record.timestamp > now:
            now = record.timestamp
            _expire(result, settings, now)
            _drop_orphans(result, settings, now)
        if isinstance(record, Slate):
            _predict(result, settings, record.items, now)
            result.counters["items"] = len(result.predicted)
        elif isinstance(record, Interaction):
            _predict(result, settings, [record], now)
        else:
            _label(result, settings, entry, record, now)
    return result


def _expire(result: ExpectedRun, settings: JoinSettings, now: int) -> None:
    late = [
        each for each in result.predicted if not each.closed and each.record.timestamp + settings.window < now
    ]
    for each in sorted(late, key=lambda predicted: predicted.record.timestamp):
        _close(result, each, "expired", _expiry(each, settings))


def _expiry(predicted: PredictedInteraction, settings: JoinSettings) -> int:
    return predicted.record.timestamp + settings.window


def _drop_orphans(result: ExpectedRun, settings: JoinSettings, now: int) -> None:
    def since(entry: Entry) -> tuple[int, int]:
        assert isinstance(entry.record, Label)
        return entry.record.timestamp, entry.source.offset

    for entry in sorted(result.waiting, key=since):
        too_long = since(entry)[0] + settings.early < now
        room = sum(len(each.source.key or b"") + len(each.source.value or b"") for each in result.waiting)
        if too_long or room > settings.early_bytes:
            result.waiting.remove(entry)
            _reject(result, entry, "orphan")


def _predict(result: ExpectedRun, settings: JoinSettings, records: Sequence[Interaction], now: int) -> None:
    if any(_remembered(result, settings, result.event(record), now) for record in records):
        result.counters["duplicate_interactions"] += 1
        return
    new = [PredictedInteraction(record) for record in records]
    result.predicted += new
    result.counters["predictions"] += 1
    for predicted in new:
        for entry in list(result.waiting):
            if _event(result, entry) == result.event(predicted.record):
                result.waiting.remove(entry)
                _join(result, predicted, entry)
    while len(waiting := [each for each in result.predicted if not each.closed]) > settings.max_pending:
        result.counters["crowded_out"] += 1
        oldest = min(waiting, key=lambda each: each.record.timestamp)
        _close(result, oldest, "expired", _expiry(oldest, settings))


def _label(result: ExpectedRun, settings: JoinSettings, entry: Entry, record: Label, now: int) -> None:
    predicted = _remembered(result, settings, result.event(record), now)
    if predicted and not predicted.closed:
        _join(result, predicted, entry)
    elif predicted and predicted.closed == "expired":
        _reject(result, entry, "late")
    elif predicted or any(_event(result, each) == result.event(record) for each in result.waiting):
        result.counters["duplicate_labels"] += 1
    else:
        result.counters["early"] += 1
        result.waiting.append(entry)
        _drop_orphans(result, settings, now)


def _event(result: ExpectedRun, entry: Entry) -> Event:
    assert not isinstance(entry.record, RejectedRecord)
    return result.event(entry.record)


def _join(result: ExpectedRun, predicted: PredictedInteraction, entry: Entry) -> None:
    record = entry.record
    assert isinstance(record, Label)
    if record.ids != predicted.record.ids:
        _reject(result, entry, "mismatched")
    else:
        _close(result, predicted, "labelled", record.timestamp)


def _close(result: ExpectedRun, predicted: PredictedInteraction, how: str, when: int) -> None:
    predicted.closed, predicted.closed_at, predicted.order = how, when, len(result.outcomes)
    result.counters[how] += 1
    result.outcomes.append((how, result.event(predicted.record)))


def _reject(result: ExpectedRun, entry: Entry, fault: str) -> None:
    result.counters[fault] += 1
    result.dead_letters.append((fault, entry.source.topic, entry.source.offset))


def _remembered(
    result: ExpectedRun, settings: JoinSettings, event: Event, now: int
) -> PredictedInteraction | None:
    for each in reversed(result.predicted):
        if result.event(each.record) == event and (
            not each.closed or _is_remembered(result, settings, each, now)
        ):
            return each
    return None


def _is_remembered(
    result: ExpectedRun, settings: JoinSettings, predicted: PredictedInteraction, now: int
) -> bool:
    later = [each for each in result.predicted if each.closed and _closed(each) > _closed(predicted)]
    return predicted.closed_at + settings.window >= now and len(later) < settings.max_closed


def _closed(predicted: PredictedInteraction) -> tuple[int, int]:
    return predicted.closed_at, predicted.order
