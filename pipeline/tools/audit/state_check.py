"""Compare the last state record with what the topics hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from pipeline.records.outputs import Outcome, Prediction, is_outcome
from pipeline.task.state import CORRECTED, State, counters
from pipeline.tools.audit.differences import AuditResult
from pipeline.tools.audit.topic_records import AuditInput

UNRECORDED: Final = ("crowded_out", "early")
"""Counters without a record of their own: a prediction that was crowded out has expired, and a label that
came early is joined or becomes a dead letter later."""


class OffsetBounds:
    """Offsets and times that bound those of a state record, collected while records are read.

    Parameters
    ----------
    state
        State record of the partition.
    """

    def __init__(self, state: State) -> None:
        self.latest = -1
        """Latest time of a prediction or a label, in milliseconds."""
        self._bounds = {
            ("prediction", state.pending_from): state.prediction_offset,
            ("outcome", state.outcomes_from): state.outcome_offset,
        }
        for snapshot in state.snapshots:
            key = ("outcome", snapshot.outcomes_learned)
            self._bounds[key] = max(snapshot.outcome_offset, self._bounds.get(key, 0))
        self.out_of_bounds: list[str] = []
        """Descriptions of records that lie below the offset from which the state record names them."""

    def note(self, record: Prediction | Outcome, offset: int) -> None:
        """Note the next record of a topic.

        Parameters
        ----------
        record
            Prediction or outcome.
        offset
            Offset of the record.
        """
        noun, time = "prediction", record.timestamp
        if is_outcome(record):
            noun, time = "outcome", record.label_timestamp or 0
        self.latest = max(self.latest, time)
        bound = self._bounds.get((noun, record.sequence))
        if bound is not None and offset < bound:
            self.out_of_bounds.append(f"{noun} {record.sequence} at offset {offset}, below {bound}")


def check_state(
    audit_input: AuditInput,
    result: AuditResult,
    *,
    bounds: OffsetBounds,
    pending: Mapping[int, Prediction],
    counted: Counter[str],
    unknown: Iterable[str],
) -> None:
    """Compare the counters, offsets and times of the state record with the topics.

    Parameters
    ----------
    audit_input
        Records of the partition.
    result
        Result to add differences to.
    bounds
        Bounds of all predictions and outcomes.
    pending
        Predictions without an outcome, by number.
    counted
        Number of records in the topics, by the names of the counters.
    unknown
        Counters that cannot be checked, because retention has deleted records.
    """
    state = audit_input.state
    left_out = {*UNRECORDED, *unknown}
    corrections = CORRECTED in state.counters or counted[CORRECTED] > 0
    slates = audit_input.topics.stream.has_slates
    known = counters(corrections=corrections, tables=bool(state.tables), slates=slates)
    names = [name for name in known if name not in left_out]
    right: dict[str, int] = {f"counter {name}": counted[name] for name in names}
    found: dict[str, int] = {name: state.counters.get(name.removeprefix("counter "), 0) for name in right}
    oldest = next(iter(pending.values()), None)
    if audit_input.predictions.complete and audit_input.outcomes.complete:
        right |= {
            "pending": len(pending),
            "pending_from": state.predictions if oldest is None else oldest.sequence,
        }
        found |= {"pending": state.pending, "pending_from": state.pending_from}
    for name, value in right.items():
        result.checked["figures of the state record"] += 1
        if found[name] != value:
            _add_difference(audit_input, result, f"{name} {value}, by the topics", f"{name} {found[name]}")
    lowest = state.outcomes if oldest is None else min(state.outcomes, oldest.model_version)
    if state.outcomes_from > lowest:
        _add_difference(
            audit_input, result, f"outcomes_from at most {lowest}", f"outcomes_from {state.outcomes_from}"
        )
    if state.stream_time < bounds.latest:
        expected = f"stream_time of {bounds.latest} or later"
        _add_difference(audit_input, result, expected, f"stream_time {state.stream_time}")
    for snapshot in state.snapshots:
        if snapshot.outcomes_learned > state.outcomes:
            expected = f"a snapshot of at most {state.outcomes} outcomes"
            _add_difference(audit_input, result, expected, f"one of {snapshot.outcomes_learned}")
    for out_of_bounds in bounds.out_of_bounds:
        _add_difference(
            audit_input, result, "records at or after the offsets that the state record names", out_of_bounds
        )


def _add_difference(audit_input: AuditInput, result: AuditResult, expected: str, found: str) -> None:
    result.add_difference(audit_input.topics.checkpoints, audit_input.state_offset, expected, found)
