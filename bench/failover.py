"""Seconds from the death of a broker to the next predictions, on a cluster of three brokers.

The broker that dies coordinates the worker's transactions. The controller takes it for dead after nine
seconds, Kafka's default, and others take over. Beside the worker stands a bare transactional producer whose
coordinator is the same broker: the time that it takes is the cluster's own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, Final, Self

import msgspec
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from bench.deployment import Deployment, invented
from bench.feed import feeding, plays
from bench.options import Options
from bench.recovery_worker import worker
from pipeline.cli.logs import configure
from pipeline.config.settings import Config
from pipeline.kafka.access.new_client import LIBRDKAFKA_LOGGER, client_settings
from pipeline.kafka.clients import METADATA_REFRESH_MS, groupless_consumer
from tests.support.cluster import Cluster, internal_partition, running_cluster

PARTITIONS: Final = 12
RATE: Final = 600
"""Events a second, of all partitions together."""
RUNS: Final = 5
WARM_UP_EVENTS: Final = 20_000
MAX_MINUTES: Final = 30
"""Minutes for which events are sent, at most."""
TIMEOUT: Final = 240.0
"""Seconds within which all partitions have to go on."""
NAME: Final = "worker-0"


def run(options: Options) -> dict[str, Any]:
    """Kill the coordinator several times, and return the seconds until all goes on, median and worst.

    Parameters
    ----------
    options
        How to run.

    Returns
    -------
    dict
        Seconds to the first and to the last partition's next prediction, and those of the bare producer.
    """
    configure()
    rows: list[dict[str, Any]] = []
    started_over: list[str] = []
    with TemporaryDirectory() as name, running_cluster() as cluster:
        options.say("the cluster runs; letting a worker start ...")
        folder = Path(name)
        events = invented(folder, WARM_UP_EVENTS)
        deployment = Deployment.create(folder, cluster.bootstrap, "failover", PARTITIONS, replication=3)
        kafka = deployment.config.kafka
        transactional_id = f"{kafka.prefix}{kafka.group}-{NAME}"
        to_send = plays(events, WARM_UP_EVENTS) * (60 * MAX_MINUTES * RATE // WARM_UP_EVENTS)
        feeder = feeding(kafka, to_send, RATE)
        try:
            with (
                worker(deployment.file, deployment.log, NAME),
                Followed(deployment.config, deployment.topics.predictions) as predictions,
                bare_producer(cluster, deployment.config, transactional_id) as bare,
            ):
                for number in range(options.runs or RUNS):
                    row = _kill(cluster, transactional_id, predictions, bare)
                    rows.append(row)
                    options.say(f"death {number + 1}: {row}")
                started_over = _reasons(deployment.log)
                options.say(f"the worker started over from the log for: {started_over or 'nothing'}")
        finally:
            feeder.terminate()
            feeder.join()

    return {
        **{f"{key}_s": round(median(row[key] for row in rows), 1) for key in rows[0]},
        **{f"{key}_worst_s": max(row[key] for row in rows) for key in rows[0]},
        "partitions": PARTITIONS,
        "started_over": started_over,
        "deaths": rows,
    }


def _reasons(log: Path) -> list[str]:
    """Return why the worker forgot its memory, each time that it did."""
    lines = [msgspec.json.decode(line) for line in log.read_bytes().splitlines() if line.startswith(b"{")]
    return [line["reason"] for line in lines if line["event"].startswith("starting over")]


def _kill(cluster: Cluster, transactional_id: str, predictions: Followed, bare: Beats) -> dict[str, float]:
    """Kill the coordinator, and return the seconds until everything goes on."""
    predictions.wait_for_all(time.time())
    bare.wait_after(time.time())
    time.sleep(3.0)
    victim = cluster.transaction_coordinator(transactional_id)
    killed = time.time()
    cluster.kill(victim)
    seen = predictions.wait_for_all(killed)
    again = bare.wait_after(killed)
    cluster.start(victim)
    cluster.wait_until(cluster.in_sync, "all replicas to be in sync")
    return {
        "first": round(min(seen.values()) - killed, 1),
        "all": round(max(seen.values()) - killed, 1),
        "bare": round(again - killed, 1),
    }


class _Identified(msgspec.Struct):
    event_id: int


_DECODE = msgspec.json.Decoder(_Identified).decode


class Followed:
    """Reads the committed predictions of all partitions; use as a context manager.

    Parameters
    ----------
    config : of the pipeline
    topic : the predictions
    """

    def __init__(self, config: Config, topic: str) -> None:
        self._topic = topic
        self._consumer = groupless_consumer(config.kafka)
        self._consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def wait_for_all(self, moment: float) -> dict[int, float]:
        """Wait for a prediction, in each partition, of an event that was sent after a moment.

        Parameters
        ----------
        moment
            In seconds since 1970.

        Returns
        -------
        dict
            When the first one was read, by partition.
        """
        seen: dict[int, float] = {}
        end = time.monotonic() + TIMEOUT
        while len(seen) < PARTITIONS:
            if time.monotonic() > end:
                raise SystemExit(f"only the partitions {sorted(seen)} went on within {TIMEOUT:.0f} s")
            for message in self._consumer.consume(10_000, 0.02):
                if message.error() is None and _DECODE(message.value() or b"").event_id > moment * 1e6:
                    seen.setdefault(message.partition() or 0, time.time())
        return seen


class Beats:
    """When the bare producer began and committed its transactions, in seconds since 1970."""

    def __init__(self) -> None:
        self._committed: list[tuple[float, float]] = []

    def note(self, begun: float) -> None:
        """Note that a transaction is committed."""
        self._committed.append((begun, time.time()))

    def wait_after(self, moment: float) -> float:
        """Wait until a transaction is committed that began after a moment; return when the first was."""
        end = time.monotonic() + TIMEOUT
        while True:
            for begun, committed in self._committed:
                if begun > moment:
                    return committed
            if time.monotonic() > end:
                raise SystemExit(f"the bare producer committed nothing for {TIMEOUT:.0f} s")
            time.sleep(0.1)


@contextmanager
def bare_producer(cluster: Cluster, config: Config, like: str) -> Iterator[Beats]:
    """Commit a record in each partition of a topic, again and again, beside the worker.

    Parameters
    ----------
    cluster
        The cluster.
    config
        Of the pipeline.
    like
        The worker's transactional id. The producer's has the same coordinator.
    """
    numbers = (f"bare-{number}" for number in range(1000))
    transactional_id = next(name for name in numbers if internal_partition(name) == internal_partition(like))
    cluster.admin.create_topics([NewTopic("bare", PARTITIONS, 3)])["bare"].result(TIMEOUT)
    beats, over = Beats(), Event()
    settings = client_settings(config.kafka) | {
        "transactional.id": transactional_id,
        "retry.backoff.ms": 5,
        "topic.metadata.refresh.interval.ms": METADATA_REFRESH_MS,
        "metadata.max.age.ms": 3 * METADATA_REFRESH_MS,
    }

    def commit() -> None:
        producer = Producer(settings, logger=LIBRDKAFKA_LOGGER)
        producer.init_transactions(TIMEOUT)
        while not over.wait(0.1):
            begun = time.time()
            producer.begin_transaction()
            for number in range(PARTITIONS):
                producer.produce("bare", b"", partition=number)
            producer.commit_transaction(TIMEOUT)
            beats.note(begun)

    def go_on() -> None:
        while not over.is_set():
            with suppress(KafkaException):
                commit()

    thread = Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield beats
    finally:
        over.set()
        thread.join()
