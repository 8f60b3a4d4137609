"""All topics of a partition after a run, in memory: what an audit looks at, to be sabotaged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from pipeline.config.settings import Join as JoinSettings
from pipeline.config.settings import Labels
from pipeline.config.stream import KUAIREC, Stream
from pipeline.config.topics import Topics
from pipeline.features.feature_set import FeatureSet
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.model import Model
from pipeline.model.settings_text import challengers_text, learner_text
from pipeline.model.shadow import ChallengerSettings
from pipeline.model.snapshot import unpack
from pipeline.records.dead_letter import DeadLetterHeaders
from pipeline.records.encoding import encode
from pipeline.records.inputs import RawMessage
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import LabelRequest, Outcome, Prediction
from pipeline.recovery.libraries import libraries_here
from pipeline.task.state import Libraries, State
from pipeline.tools.audit.differences import AuditResult, Finding
from pipeline.tools.audit.epochs import SettingsEpochs
from pipeline.tools.audit.partition import audit
from pipeline.tools.audit.score_index import IndexedLine
from pipeline.tools.audit.topic_records import AuditInput, DeadLetterMessage, PartitionRecords
from tests.support.builders import (
    Inputs,
    Message,
    inputs,
    interaction,
    join_settings,
    label,
    model_under,
    new_model,
    new_task,
)
from tests.support.consumer import REST, Delivery, Step
from tests.support.memory_log import Slot
from tests.support.output_log import OutputLog
from tests.support.streams import Impatient

AnyOutput: TypeAlias = Prediction | Outcome | LabelRequest
STATE_OFFSET = 77
BEHIND = 10**6
"""An offset behind everything."""


@dataclass
class Recording:
    """Topics as lists, and the last state record."""

    interactions: list[RawMessage]
    labels: list[RawMessage]
    predictions: list[RawMessage]
    outcomes: list[RawMessage]
    dead_letters: list[DeadLetterMessage]
    snapshot: bytes | None
    state: State
    log_start_offsets: dict[str, int]
    """First offsets that retention has left, by topic; 0 where none is named."""
    requests: list[RawMessage] = field(default_factory=list)
    policy: LabelPolicy | None = None
    join: JoinSettings = field(default_factory=JoinSettings)
    """Settings of the join; those for missing and later labels matter."""
    stream: Stream = KUAIREC
    """KuaiRec's definition, or one that has its features."""
    stable_offset: int = BEHIND
    """No output below this offset was written after the state record."""

    @classmethod
    def of(cls, given: Inputs, log: OutputLog) -> Recording:
        """Collect what a run has written."""
        assert log.state is not None
        reference = log.state.snapshot
        return cls(
            [entry.source for entry in given.interactions],
            [entry.source for entry in given.labels],
            [_source("predictions", slot) for slot in log.predictions],
            [_source("outcomes", slot) for slot in log.outcomes],
            [
                DeadLetterMessage(
                    RawMessage("dead-letters", 0, number, dead_letter.source.key, dead_letter.source.value),
                    DeadLetterHeaders(
                        dead_letter.fault,
                        dead_letter.reason,
                        *dead_letter.source[:3],
                        dead_letter.source.headers,
                    ),
                )
                for number, dead_letter in enumerate(log.dead_letters)
            ],
            None if reference is None else log.snapshots[reference.chunks[0]],
            msgspec.structs.replace(log.state, libraries=Libraries(dict(libraries_here()))),
            {},
            [_source("label-requests", slot) for slot in log.requests],
            log.policy,
            stream=log.stream,
        )

    def change_state(self, **changes: Any) -> None:
        """Write other things into the state record."""
        self.state = msgspec.structs.replace(self.state, **changes)

    def change_outcome(self, number: int, **changes: Any) -> None:
        """Write other things into an outcome."""
        outcome = OutputTypes.of(self.stream).outcome
        self.outcomes[number] = changed(self.outcomes[number], outcome, **changes)

    def change_prediction(self, number: int, **changes: Any) -> None:
        """Write other things into a prediction."""
        self.predictions[number] = changed(self.predictions[number], Prediction, **changes)

    def audit(
        self, *, from_snapshot: bool = False, scores: Iterable[IndexedLine] | None = None
    ) -> AuditResult:
        """Audit the recording, and what followers have answered."""
        earlier, result = self.state.earlier, AuditResult(0)
        current = self.model() if from_snapshot else self._new_model()
        before = [model_under(epoch.settings, self.stream) for epoch in earlier]
        epochs = SettingsEpochs(earlier, before, current)
        audit(self._audit_input(), epochs, result, join=self.join, policy=self.policy, scores=scores)
        return result

    def findings(self) -> list[Finding]:
        """Return the differences that an audit finds."""
        return self.audit().findings

    def first(self) -> Finding:
        """Return the first difference."""
        findings = self.findings()
        assert findings, "the sabotage was not found"
        return findings[0]

    def model(self) -> Model:
        """Return the model of the snapshot."""
        model = self._new_model()
        unpack(self.snapshot or b"", model)
        return model

    def _new_model(self) -> Model:
        return model_under(self.state.settings, self.stream)

    def _audit_input(self) -> AuditInput:
        def records(topic: str, items: list[Any], stable_offset: int = BEHIND) -> PartitionRecords[Any]:
            return PartitionRecords(items, self.log_start_offsets.get(topic, 0), stable_offset)

        return AuditInput(
            topics=Topics(stream=self.stream),
            state=self.state,
            state_offset=STATE_OFFSET,
            snapshot=self.snapshot,
            interactions=records("interactions", self.interactions),
            labels=records("watch-labels", self.labels),
            predictions=records("predictions", self.predictions, self.stable_offset),
            outcomes=records("outcomes", self.outcomes, self.stable_offset),
            dead_letters=records("dead-letters", self.dead_letters, self.stable_offset),
            requests=records("label-requests", self.requests, self.stable_offset),
        )


def changed(source: RawMessage, record_type: type[AnyOutput], **changes: Any) -> RawMessage:
    """Return the message with another record in it."""
    record = msgspec.json.decode(source.value or b"", type=record_type)
    return source._replace(value=encode(msgspec.structs.replace(record, **changes)))


def _source(topic: str, slot: Slot) -> RawMessage:
    offset, value = slot
    user = msgspec.json.decode(value)["user_id"]
    return RawMessage(topic, 0, offset, str(user).encode(), value)


def record(
    given_inputs: Inputs,
    drawn: list[tuple[Step, bool]],
    join: JoinSettings | None = None,
    challengers: Mapping[str, ChallengerSettings] = MappingProxyType({}),
    policy: LabelPolicy | None = None,
    *,
    stream: Stream = KUAIREC,
) -> Recording:
    """Run batch by batch, each with a snapshot or without."""
    features = FeatureSet.of(stream)
    model = new_model(challengers=challengers, weighted=stream.labels.weighted, features=features)
    task = new_task(join, model=model, policy=policy)
    settings = learner_text(model.learner.settings) | challengers_text(challengers)
    log = OutputLog(settings=settings, policy=policy, stream=stream)
    delivery = Delivery(task, given_inputs)
    for step, snapshot in drawn:
        delivery.deliver(step)
        log.commit(task, task.advance(step.limit), snapshot and task.model.outcomes_learned > 0)
    recording = Recording.of(given_inputs, log)
    recording.join = join or recording.join
    return recording


def eventful() -> Inputs:
    """Two hundred events with every disposition, and a few that still wait at the end."""
    interactions: list[Message] = []
    labels: list[Message] = []
    for n in range(200):
        user, video, at = n % 5, n % 7, 10 * n
        interactions.append(interaction(n, at, user, video))
        if n % 10:
            labels.append(label(n, at + 35, n % 3, user, video))
        if n % 40 == 7:
            interactions.append(interaction(n, at, user, video))
            labels.append(label(n, at + 36, n % 3, user, video))
        if n % 50 == 3:
            labels.append(label(1_000 + n, at + 35))
            labels.append(label(n - 3, at + 150, 1.0, (n - 3) % 5, (n - 3) % 7))
        if n % 50 == 11:
            labels.append(label(n - 1, at + 35, 1.0, 4, 6))
        if n % 60 == 30:
            interactions.append(b"{")
            labels.append(None)
            interactions.append(interaction(2_000 + n, at + 5_000))
    interactions.append(interaction(3_001, 2_010))
    labels.append(label(3_000, 2_020))
    return inputs(interactions, labels)


@cache
def _eventful_run(labels: Labels) -> Recording:
    policy = None if labels.policy == "all" else Impatient(labels)
    drawn = [(Step(9, 9, False, 15), number == 8) for number in range(24)] + [(REST, False)]
    return record(eventful(), drawn, join_settings(max_pending=10), policy=policy)


def eventful_run(labels: Labels | None = None) -> Recording:
    """Return a run over `eventful`, with lists of its own."""
    run = copy(_eventful_run(labels or Labels()))
    for name in ("interactions", "labels", "predictions", "outcomes", "dead_letters", "requests"):
        setattr(run, name, list(getattr(run, name)))
    return run
