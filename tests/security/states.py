"""State records that another writer has put into the log, and offsets that name none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from pipeline.config.topics import Topics
from pipeline.kafka.access.new_client import LIBRDKAFKA_LOGGER
from pipeline.kafka.committed import metadata
from pipeline.records.names import state_key
from tests.integration.harness import TIMEOUT
from tests.security.refusal import Endpoint, Refusal, refused
from tests.security.rights import PREFIX
from tests.support import cluster as clusters

TOPICS: Final = Topics(PREFIX)
PARTITION: Final = 0
LARGE: Final = 10**18

Record = dict[str, Any]


def _reference(**fields: object) -> Record:
    known = {"chunks": [0], "sha256": "0" * 64, "folded": 0, "outcome_offset": 0, "slot": 0}
    return known | fields


FORGERIES: Final[dict[str, Callable[[Record], bytes]]] = {
    "state record of another partition": lambda state: _changed(state, partition=1),
    "more outcomes than predictions": lambda state: _changed(state, outcomes=LARGE),
    "10^18 outcomes in the snapshot": lambda state: _changed(state, snapshot=_reference(folded=LARGE)),
    "negative offsets of chunks": lambda state: _changed(state, snapshot=_reference(chunks=[-1])),
    "100,000 times the same chunk": lambda state: _changed(state, snapshot=_reference(chunks=[0] * 100_000)),
    "invalid waiting label": lambda state: _changed(state, waiting=[{"topic": "x"}]),
    "missing field": lambda state: json.dumps({"version": state["version"]}).encode(),
    "no JSON": lambda _: b"{",
    "deep nesting": lambda _: b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "empty record": lambda _: b"",
}
"""Make a forged state record from a true one, by what is wrong with it."""


NOTES: Final = {
    "offset of 20 digits": "state=" + 20 * "9",
    "offset of no record": "state=123456",
}
"""Notes of committed offsets that name no state record, by what is wrong with them."""


def _changed(state: Record, **fields: object) -> bytes:
    return json.dumps(state | fields).encode()


def refusals(cluster: clusters.Cluster, folder: Path) -> Iterator[Refusal]:
    """Let the group's offsets name each forged record, and start a worker."""
    admin = Endpoint(cluster.client_settings("admin"), PREFIX)
    consumer = Consumer(
        cluster.client_settings() | {"group.id": admin.environment()["FORKS_KAFKA__GROUP"]},
        logger=LIBRDKAFKA_LOGGER,
    )
    try:
        inputs = [TopicPartition(topic, PARTITION) for topic in TOPICS.inputs]
        committed = consumer.committed(inputs, TIMEOUT)
        state = json.loads(_record(consumer, int((committed[0].metadata or "").partition("=")[2])))

        def name(note: str) -> None:
            consumer.commit(
                offsets=[TopicPartition(each.topic, each.partition, each.offset, note) for each in committed],
                asynchronous=False,
            )

        for case, forge in FORGERIES.items():
            name(metadata(_write(cluster, forge(state))))
            yield _plain(refused(case, ("run",), admin, folder))
        for case, note in NOTES.items():
            name(note)
            yield _plain(refused(case, ("run",), admin, folder))
        name(committed[0].metadata or "")
    finally:
        consumer.close()


def _record(consumer: Consumer, offset: int) -> bytes:
    consumer.assign([TopicPartition(TOPICS.checkpoints, PARTITION, offset)])
    message = consumer.poll(TIMEOUT)
    assert message is not None
    value = message.value()
    assert isinstance(value, bytes)
    return value


def _write(cluster: clusters.Cluster, value: bytes) -> int:
    """Write a state record as a foreign writer would, and return its offset."""
    offsets: list[int] = []
    producer = Producer(cluster.client_settings(), logger=LIBRDKAFKA_LOGGER)
    producer.produce(
        TOPICS.checkpoints,
        value,
        state_key(PARTITION),
        PARTITION,
        on_delivery=lambda _, message: offsets.append(message.offset() or 0),
    )
    assert producer.flush(TIMEOUT) == 0
    return offsets[0]


def _plain(refusal: Refusal) -> Refusal:
    """Leave out offsets and counts, which differ from run to run."""
    return refusal._replace(message=re.sub(r"(offset|pending is|with) \d+", r"\1 N", refusal.message))
