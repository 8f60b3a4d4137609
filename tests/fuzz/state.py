"""Mutated state records through the whole restore, in memory."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from random import Random
from typing import NamedTuple

import msgspec

from pipeline.errors import StateError
from pipeline.model.settings_text import challengers_text, learner_text
from pipeline.records.encoding import encode_json
from pipeline.records.outputs import Outcome
from pipeline.recovery.settings_check import refuse_other_settings
from pipeline.recovery.state_check import StateOrigin, decode_state
from pipeline.task.sharing import SharingSettings
from pipeline.task.state import Libraries, LibraryEpoch, State
from tests.fuzz.mutations import mutated_bytes, mutated_json, nested_deeply
from tests.support.builders import CHALLENGERS, inputs, interaction, join_settings, label, new_model, new_task
from tests.support.consumer import Delivery, Step
from tests.support.output_log import OutputLog

SHARING = SharingSettings(3, 10)


class WrittenState(NamedTuple):
    """A state record as a worker wrote it."""

    value: bytes
    state: State


@cache
def written_log() -> OutputLog:
    """Return a log with two snapshots, waiting predictions and early labels."""
    model = new_model(challengers=CHALLENGERS)
    settings = learner_text(model.learner.settings) | challengers_text(CHALLENGERS) | {"partitions": "3"}
    task, log = new_task(join_settings(), model=model, sharing=SHARING), OutputLog(settings=settings)
    log.interval = SHARING.interval
    task.libraries = Libraries({"numpy": "2.0.0"}, [LibraryEpoch({}, 5, 4)])
    interactions = [interaction(n, 10 * n, n % 4, n % 5) for n in range(80)]
    labels = [label(n, 10 * n + 25, n % 3, n % 4, n % 5) for n in range(72)]
    early = [label(1_000 + n, 785 + n, 1.0, n % 3) for n in range(3)]
    delivery = Delivery(task, inputs(interactions, labels + early))
    for number in range(16):
        delivery.deliver(Step(20, 20, True, 20))
        log.commit(task, task.advance(20), snapshot=number in {1, 3, 5})
    return log


STATE_OFFSET = 10
"""Offset of the state record, behind those of the snapshots."""
_ORIGIN = StateOrigin("checkpoints", 0, STATE_OFFSET, "watch-labels")


def written() -> WrittenState:
    """Return the last state record of the log."""
    state = written_log().state
    assert state is not None
    return WrittenState(encode_json(state), state)


def restore(value: bytes) -> str:
    """Restore a task from a state record, as a worker would; return what came of it."""
    try:
        state = decode_state(value, _ORIGIN)
        refuse_other_settings(state, written().state.settings)
        if (state.interactions.offset, state.labels.offset) != _committed():
            return "refused: other offsets"
        replace(written_log(), state=state).restore(join_settings())
    except StateError:
        return "refused"
    return "restored"


def _committed() -> tuple[int, int]:
    state = written().state
    return state.interactions.offset, state.labels.offset


def fuzz(rng: Random) -> str:
    """Restore from a state record that is changed at random."""
    value = written().value
    draw = rng.random()
    if draw < 0.2:
        return restore(mutated_bytes(rng, value))
    if draw < 0.22:
        return restore(nested_deeply(rng, value))
    return restore(json.dumps(mutated_json(rng, json.loads(value))).encode())


def outcomes_of(log: OutputLog) -> list[Outcome]:
    """Return the outcomes of a log."""
    return [msgspec.json.decode(value, type=Outcome) for _, value in log.outcomes]
