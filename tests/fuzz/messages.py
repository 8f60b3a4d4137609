"""Mutated messages through the whole task, in memory: each is accounted for."""

from __future__ import annotations

import json
from random import Random

from pipeline.records.decoding import INTERACTION_DECODER, LABEL_DECODER
from pipeline.records.encoding import encode
from pipeline.records.inputs import RawMessage
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.records.names import Fault
from pipeline.worker.encoder import RecordEncoder
from tests.fuzz.mutations import mutated_bytes, mutated_json, nested_deeply
from tests.support.builders import Inputs, interaction, join_settings, label, new_task
from tests.support.consumer import Delivery, Step
from tests.support.entries import entries

MESSAGES = 50
"""Messages of each input in a case."""
LATEST = 10**7
"""The latest time that an input may have, in milliseconds."""
STEP = Step(20, 20, True, 30)


def fuzz(rng: Random) -> str:
    """Process messages that are changed at random, and check that each has one disposition."""
    task, encoder = new_task(join_settings()), RecordEncoder()
    delivery = Delivery(
        task,
        Inputs(
            entries(_messages(rng, "interactions"), INTERACTION_DECODER, LATEST),
            entries(_messages(rng, "watch-labels"), LABEL_DECODER, LATEST),
        ),
    )
    predicted = outcomes = dead_letters = idle = 0
    while idle < 5:
        delivery.deliver(STEP)
        batch = task.advance(STEP.limit)
        encoded = encoder.encode(batch)
        predicted += len(encoded.predictions.values)
        outcomes += len(encoded.outcomes.values)
        dead_letters += len(batch.dead_letters)
        idle = idle + 1 if batch.empty else 0
    counters = task.counters
    assert counters["interactions"] == counters["labels"] == MESSAGES
    assert counters["predictions"] == predicted
    assert sum(counters[fault.value] for fault in Fault) == dead_letters
    assert counters["labelled"] + counters["expired"] == outcomes
    waiting = len(task.state({"partitions": "1"}).waiting)
    duplicates = counters["duplicate_interactions"] + counters["duplicate_labels"]
    assert predicted + counters["labelled"] + duplicates + dead_letters + waiting == 2 * MESSAGES
    return "each message is accounted for"


def _messages(rng: Random, topic: str) -> list[RawMessage]:
    found = []
    for offset in range(MESSAGES):
        event, user = rng.randrange(MESSAGES), rng.randrange(4)
        record = (
            interaction(event, 10 * offset, user, rng.randrange(5))
            if topic == "interactions"
            else label(event, 10 * offset + 25, rng.random(), user, rng.randrange(5))
        )
        found.append(RawMessage(topic, 0, offset, *_changed(rng, record)))
    return found


def _changed(rng: Random, record: KuaiRecInteraction | WatchLabel) -> tuple[bytes | None, bytes | None]:
    """Return key and value of a record, changed in every second case."""
    key, value = str(record.user_id).encode(), encode(record)
    match rng.randrange(10):
        case 0 | 1:
            return key, mutated_bytes(rng, value)
        case 2 | 3:
            return key, json.dumps(mutated_json(rng, json.loads(value))).encode()
        case 4:
            others = (None, b"", mutated_bytes(rng, key), rng.randbytes(rng.randrange(40)))
            return rng.choice(others), rng.choice((None, b"", value, rng.randbytes(20)))
        case 5 if rng.random() < 0.02:
            return key, nested_deeply(rng, value)
        case _:
            return key, value
