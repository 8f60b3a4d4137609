"""All topics of a partition after a run, in memory: what an audit looks at, to be sabotaged."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from pipeline.config.tree import Join as JoinSettings
from pipeline.config.tree import Labels
from pipeline.kafka.topics import Topics
from pipeline.model.label_policy import Policy
from pipeline.model.model import Model
from pipeline.model.settings_text import challengers_text, learner_text
from pipeline.model.shadow import Contender
from pipeline.model.snapshot import unpack
from pipeline.records.dead_letter import Letter
from pipeline.records.encoding import encode
from pipeline.records.inputs import Source
from pipeline.records.outputs import LabelRequest, Outcome, Prediction
from pipeline.task.state import State
from pipeline.tools.audit.differences import Finding, Ledger
from pipeline.tools.audit.epochs import Eras
from pipeline.tools.audit.partition import audit
from pipeline.tools.audit.topic_records import Buried, Evidence, Stretch
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
from tests.support.output_log import OutputLog, Slot
from tests.support.streams import Impatient

AnyOutput: TypeAlias = Prediction | Outcome | LabelRequest
STATE_OFFSET = 77
BEHIND = 10**6
"""An offset behind everything."""


@dataclass
class Recording:
    """Topics as lists, and the last state record."""

    interactions: list[Source]
    labels: list[Source]
    predictions: list[Source]
    outcomes: list[Source]
    dead_letters: list[Buried]
    snapshot: bytes | None
    state: State
    begins: dict[str, int]
    """First offsets that retention has left, by topic; 0 where none is named."""
    requests: list[Source] = field(default_factory=list)
    policy: Policy | None = None
    covered: int = BEHIND
    """No output below this offset was written after the state record."""

    @classmethod
    def of(cls, given: Inputs, log: OutputLog) -> Recording:
        """What a run has left."""
        assert log.state is not None
        reference = log.state.snapshot
        return cls(
            [entry.source for entry in given.interactions],
            [entry.source for entry in given.labels],
            [_source("predictions", slot, Prediction) for slot in log.predictions],
            [_source("outcomes", slot, Outcome) for slot in log.outcomes],
            [
                Buried(
                    Source("dead-letters", 0, number, letter.source.key, letter.source.value),
                    Letter(letter.fault, letter.reason, *letter.source[:3], letter.source.headers),
                )
                for number, letter in enumerate(log.dead_letters)
            ],
            None if reference is None else log.snapshots[reference.chunks[0]],
            log.state,
            {},
            [_source("label-requests", slot, LabelRequest) for slot in log.requests],
            log.policy,
        )

    def change_state(self, **changes: Any) -> None:
        """Write other things into the state record."""
        self.state = msgspec.structs.replace(self.state, **changes)

    def change_outcome(self, number: int, **changes: Any) -> None:
        """Write other things into an outcome."""
        self.outcomes[number] = changed(self.outcomes[number], Outcome, **changes)

    def change_prediction(self, number: int, **changes: Any) -> None:
        """Write other things into a prediction."""
        self.predictions[number] = changed(self.predictions[number], Prediction, **changes)

    def audit(self, *, from_snapshot: bool = False) -> Ledger:
        """What an audit makes of it."""
        earlier, ledger = self.state.earlier, Ledger(0)
        present = self.model() if from_snapshot else self._new_model()
        eras = Eras(earlier, [model_under(era.settings) for era in earlier], present)
        audit(self._evidence(), eras, ledger, teach_missing=True, policy=self.policy)
        return ledger

    def findings(self) -> list[Finding]:
        """What differs."""
        return self.audit().findings

    def first(self) -> Finding:
        """The first that differs."""
        findings = self.findings()
        assert findings, "the sabotage was not found"
        return findings[0]

    def model(self) -> Model:
        """The model of the snapshot."""
        model = self._new_model()
        unpack(self.snapshot or b"", model)
        return model

    def _new_model(self) -> Model:
        return model_under(self.state.settings)

    def _evidence(self) -> Evidence:
        def stretch(topic: str, items: list[Any], covered: int = BEHIND) -> Stretch[Any]:
            return Stretch(items, self.begins.get(topic, 0), covered)

        return Evidence(
            topics=Topics(),
            state=self.state,
            state_offset=STATE_OFFSET,
            snapshot=self.snapshot,
            interactions=stretch("interactions", self.interactions),
            labels=stretch("watch-labels", self.labels),
            predictions=stretch("predictions", self.predictions, self.covered),
            outcomes=stretch("outcomes", self.outcomes, self.covered),
            dead_letters=stretch("dead-letters", self.dead_letters, self.covered),
            requests=stretch("label-requests", self.requests, self.covered),
        )


def changed(source: Source, record_type: type[AnyOutput], **changes: Any) -> Source:
    """The message with another record in it."""
    record = msgspec.json.decode(source.value or b"", type=record_type)
    return source._replace(value=encode(msgspec.structs.replace(record, **changes)))


def _source(topic: str, slot: Slot, record_type: type[AnyOutput]) -> Source:
    offset, value = slot
    user = msgspec.json.decode(value, type=record_type).user_id
    return Source(topic, 0, offset, str(user).encode(), value)


def record(
    given_inputs: Inputs,
    drawn: list[tuple[Step, bool]],
    join: JoinSettings | None = None,
    challengers: Mapping[str, Contender] = MappingProxyType({}),
    policy: Policy | None = None,
) -> Recording:
    """Run batch by batch, each with a snapshot or without."""
    model = new_model(challengers=challengers)
    task = new_task(join, model=model, policy=policy)
    settings = learner_text(model.learner.settings) | challengers_text(challengers)
    log = OutputLog(settings=settings, policy=policy)
    delivery = Delivery(task, given_inputs)
    for step, snapshot in drawn:
        delivery.deliver(step)
        log.commit(task, task.advance(step.limit), snapshot and task.model.folded > 0)
    return Recording.of(given_inputs, log)


def eventful() -> Inputs:
    """Two hundred events with every fate in them, and a few that still wait at the end."""
    shown: list[Message] = []
    labels: list[Message] = []
    for n in range(200):
        user, video, at = n % 5, n % 7, 10 * n
        shown.append(interaction(n, at, user, video))
        if n % 10:
            labels.append(label(n, at + 35, n % 3, user, video))
        if n % 40 == 7:
            shown.append(interaction(n, at, user, video))
            labels.append(label(n, at + 36, n % 3, user, video))
        if n % 50 == 3:
            labels.append(label(1_000 + n, at + 35))
            labels.append(label(n - 3, at + 150, 1.0, (n - 3) % 5, (n - 3) % 7))
        if n % 50 == 11:
            labels.append(label(n - 1, at + 35, 1.0, 4, 6))
        if n % 60 == 30:
            shown.append(b"{")
            labels.append(None)
            shown.append(interaction(2_000 + n, at + 5_000))
    shown.append(interaction(3_001, 2_010))
    labels.append(label(3_000, 2_020))
    return inputs(shown, labels)


@cache
def _eventful_run(labels: Labels) -> Recording:
    policy = None if labels.policy == "all" else Impatient(labels)
    drawn = [(Step(9, 9, False, 15), number == 8) for number in range(24)] + [(REST, False)]
    return record(eventful(), drawn, join_settings(max_pending=10), policy=policy)


def eventful_run(labels: Labels | None = None) -> Recording:
    """A run over `eventful`, with lists of its own."""
    run = copy(_eventful_run(labels or Labels()))
    for name in ("interactions", "labels", "predictions", "outcomes", "dead_letters", "requests"):
        setattr(run, name, list(getattr(run, name)))
    return run
