"""A long-lived worker. After every fault it forgets its memory and restores from the log.

A `Worker` runs one `Session` after the other. When a transaction fails, a broker goes away or the group
rebalances without the worker, the session is thrown away and the next one restores.
"""

from __future__ import annotations

import gc
import math
import platform
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from uuid import uuid4

import confluent_kafka
import structlog
from confluent_kafka import KafkaError, KafkaException

from pipeline.config.settings import Config, Kafka
from pipeline.config.topics import topics_of
from pipeline.errors import AuthorizationError, BrokerError, FencedError, TopicError
from pipeline.kafka.access.authorization import (
    denied,
    is_denied,
    may_be_denied,
    rights_of_code,
)
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.errors import error_class, error_text, is_fenced, is_too_large
from pipeline.kafka.access.missing_rights import missing_rights
from pipeline.kafka.access.rights import Right, Role, rights
from pipeline.kafka.outage import MAX_BACKOFF
from pipeline.kafka.output_values import Encoders
from pipeline.kafka.partitioner import check_partitioning
from pipeline.kafka.registry import decoders_of
from pipeline.kafka.topics import needs_of, output_limits, oversized, partition_count
from pipeline.model.cost import cost_warning
from pipeline.model.factory import ModelFactory
from pipeline.monitoring.monitor import Monitor
from pipeline.worker.output_schemas import registered_outputs
from pipeline.worker.session import Session
from pipeline.worker.spill_file import refuse_unwritable
from pipeline.worker.warm_up import warm_up

CONFIRMATION_PERIOD = 60.0
"""Seconds after which a denied right that is denied once more counts as a new denial."""

_log = structlog.get_logger()


def tune_garbage_collector() -> None:
    """Let the garbage collector run seldom, and never look at the objects that exist by now.

    A batch makes tens of thousands of objects without cycles. With the default thresholds the collector took
    a sixth of a worker's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)


@contextmanager
def serve_monitor(monitor: Monitor, config: Config, instance: str) -> Iterator[None]:
    """Answer requests for metrics and probes inside the block, if an address is set.

    Parameters
    ----------
    monitor
        What the worker says of itself.
    config
        The whole configuration.
    instance
        The worker's name.

    Raises
    ------
    ConfigError
        The address cannot be listened on.
    """
    address = config.metrics.address
    if address is None:
        yield
        return
    from pipeline.monitoring.application import (  # noqa: PLC0415 - a worker without an address
        SERVER_LIMITS,
        application,
    )
    from pipeline.monitoring.http_server import listening, serve  # noqa: PLC0415 - starts sooner without both

    info: Mapping[str, str] = {
        "worker": instance,
        "group": config.kafka.group,
        "version": version("forks-stream"),
        "librdkafka": confluent_kafka.libversion()[0],
        "python": platform.python_version(),
    }
    app = application(monitor, config, info)
    with listening(address, "metrics.address") as listener, serve(app, listener, SERVER_LIMITS):
        yield


def known_missing_rights(kafka: Kafka, wanted: Sequence[Right]) -> list[Right]:
    """Return the rights that the brokers deny; none while no broker can be asked.

    A record may also be given up because its broker is away, and a worker outlasts that.

    Parameters
    ----------
    kafka
        The worker's connection.
    wanted
        The rights that it needs.

    Returns
    -------
    list of Right
        Those that are denied for certain.
    """
    try:
        return missing_rights(Admin(kafka), wanted)
    except BrokerError as error:
        _log.warning("no broker tells which rights the worker has", reason=str(error))
        return []


class Worker:
    """Runs sessions until told to stop.

    Parameters
    ----------
    config
        The whole configuration.

    Raises
    ------
    ConfigError, BrokerError, TopicError, DataError, AuthorizationError, StorageError
        On construction: the pipeline cannot run with this configuration.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        if config.join.spill_folder is not None:
            refuse_unwritable(config.join.spill_folder)
        self._factory = ModelFactory(config)
        self._instance = config.kafka.instance or f"{socket.gethostname()}-{uuid4().hex[:8]}"
        topics = topics_of(config)
        decoders_of(topics)  # refuses formats without a registry
        client = Admin(config.kafka)
        self._rights = rights(Role.WORKER, config, topics, partitions=1)
        self._refuse_missing_rights(client)
        needs = needs_of(config, topics)
        partitions = partition_count(client, topics, needs)
        if (whole := rights(Role.WORKER, config, topics, partitions)) != self._rights:
            self._rights = whole
            self._refuse_missing_rights(client)
        self._limits = output_limits(client, topics)
        self._exceeded = False
        """Whether a record was refused as too large, and the limits are still those."""
        check_partitioning(config.kafka, topics, partitions)
        self._settings = self._factory.settings(partitions)
        self._stopping = threading.Event()
        self._encoders: Encoders = {}
        self._monitor = Monitor(config.metrics)
        begin = time.monotonic()
        _log.info("getting ready; the first start compiles the learner, which takes a while")
        if (warning := cost_warning(self._factory.learners)) is not None:
            _log.warning("events cost much", reason=warning)
        warm_up(self._factory)
        tune_garbage_collector()
        self._startup_seconds = time.monotonic() - begin

    def _refuse_missing_rights(self, client: Admin) -> None:
        if missing := missing_rights(client, self._rights):
            raise denied(self.config.kafka, missing, Role.WORKER)

    def stop(self) -> None:
        """Finish the batch, write snapshots of the models, and return from `run`."""
        _log.info("stopping after this batch; a second signal ends at once")
        self._stopping.set()

    def run(self) -> None:
        """Work until `stop`.

        Raises
        ------
        FencedError
            Another worker runs under this one's instance name.
        StateError
            What the topics hold does not fit together.
        ConfigError
            The address for metrics and probes cannot be listened on.
        AuthorizationError
            The brokers deny a right.
        TopicError
            A topic does not take a record that has to be written.
        SchemaRefusedError
            The schema registry refuses the schema of an output.
        """
        _log.info("ready", instance=self._instance, seconds=round(self._startup_seconds, 1))
        with serve_monitor(self._monitor, self.config, self._instance):
            self._run_sessions()

    def _run_sessions(self) -> None:
        self._encoders = registered_outputs(topics_of(self.config), self._stopping)
        wait, denied_until = 1.0, -math.inf
        while not self._stopping.is_set():
            try:
                with self._new_session() as session:
                    session.start(self._stopping.is_set)
                    wait = 1.0
                    self._run_session(session)
            except AuthorizationError as error:
                if time.monotonic() < denied_until:
                    raise
                denied_until = time.monotonic() + CONFIRMATION_PERIOD
                wait = self._start_over("authorization", str(error), wait)
            except KafkaException as error:
                if may_be_denied(error):
                    self._raise_missing_rights(error, confirmed=time.monotonic() < denied_until)
                    denied_until = time.monotonic() + CONFIRMATION_PERIOD
                if is_too_large(error):
                    self._read_limits(error)
                wait = self._start_over(error_class(error), _reason(error), wait)

    def _read_limits(self, error: KafkaException) -> None:
        """Read how large records may be, after one was refused as too large.

        Somebody may have lowered a limit meanwhile. A broker may know of that before another one tells.

        Raises
        ------
        TopicError
            No record of the next session can be written either.
        """
        topics, before = topics_of(self.config), self._limits
        try:
            client = Admin(self.config.kafka)
            partition_count(client, topics, needs_of(self.config, topics))
            self._limits = output_limits(client, topics)
        except (BrokerError, KafkaException) as away:
            _log.warning("no broker tells how large records may be", reason=str(away))
            return
        if self._exceeded and self._limits == before:
            raise TopicError(oversized(client, topics)) from error
        self._exceeded = self._limits == before

    def _new_session(self) -> Session:
        return Session(
            self.config,
            self._instance,
            self._factory.new_model,
            self._monitor,
            self._settings,
            limits=self._limits,
            encoders=self._encoders,
        )

    def _run_session(self, session: Session) -> None:
        try:
            session.run(self._stopping.is_set)
        except KafkaException as error:
            if is_fenced(error) and session.membership.replaced():
                raise FencedError(
                    f"another worker with kafka.instance = {self._instance} has taken over "
                    f"({error_text(error)}). Give every worker a name of its own"
                ) from error
            raise

    def _start_over(self, kind: str, reason: str, wait: float) -> float:
        """Wait before the next session, and return how long to wait before the one after it."""
        self._monitor.session_failed(kind, reason)
        _log.warning("starting over from the log", reason=reason, wait_s=wait)
        self._stopping.wait(wait)
        return min(2 * wait, MAX_BACKOFF)

    def _raise_missing_rights(self, error: KafkaException, *, confirmed: bool) -> None:
        """Raise an error that names the rights that are missing, if any are.

        Brokers do not tell which transactional ids they allow, so that a denial of those has to come twice.
        """
        missing = known_missing_rights(self.config.kafka, self._rights)
        if not missing and confirmed and is_denied(error):
            missing = rights_of_code(error, self._rights)
        if missing:
            raise denied(self.config.kafka, missing, Role.WORKER) from error


def _reason(error: KafkaException) -> str:
    """Return why a session ended. librdkafka speaks of a newer instance, which was looked for in vain."""
    text = error_text(error)
    if "Static consumer fenced" in text:
        return (
            f"{error.args[0].name()}: the group's coordinator took another member for this worker, as one "
            "that has just taken over may; no other worker has its name"
        )
    other = error.args[0].code() == KafkaError._FATAL and "newer instance" not in text
    if other or not is_fenced(error):
        return text
    return (
        f"{error.args[0].name()}: the transaction was ended by a broker, because it took longer than "
        "worker.transaction_timeout, or by a producer with the same transactional id"
    )
