"""The long-lived consumer. Whatever goes wrong: forget memory, restore from the log.

A `Worker` runs one `Session` after the other. When a transaction fails, the broker goes away or the
group moves on, the session is thrown away and the next one restores: one path for every fault.
"""

from __future__ import annotations

import gc
import socket
import threading
import time
from uuid import uuid4

import numpy as np
import structlog
from confluent_kafka import KafkaException

from pipeline.config.tree import Config
from pipeline.errors import FencedError
from pipeline.join import merge
from pipeline.kafka.clients import client_settings, error_text, is_fenced
from pipeline.kafka.partitioner_check import check_partitioning
from pipeline.kafka.topics import admin, partition_count, topics_of
from pipeline.model.factory import ModelFactory
from pipeline.records.decimals import encode_rows
from pipeline.worker.metrics import Gauges, serve_metrics
from pipeline.worker.session import Session

MAX_BACKOFF = 10.0
"""Seconds between two attempts to get on, at most."""

_log = structlog.get_logger()


def tune_garbage_collector() -> None:
    """Let the garbage collector look for cycles seldom, and never again at what is there by now.

    A batch makes ten thousands of objects, which go as they came, without any cycle. Looking through them
    every few hundred took a sixth of a worker's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)


class Worker:
    """Runs until told to stop, over any number of sessions.

    Parameters
    ----------
    config
        The whole configuration.

    Raises
    ------
    ConfigError, BrokerError, TopicError, DataError
        On construction, if the pipeline cannot run like this.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self._factory = ModelFactory(config)
        self._instance = config.kafka.instance or f"{socket.gethostname()}-{uuid4().hex[:8]}"
        topics = topics_of(config)
        partitions = partition_count(admin(client_settings(config.kafka)), topics)
        check_partitioning(config.kafka, topics, partitions)
        self._settings = self._factory.settings(partitions)
        self._stopping = threading.Event()
        self._gauges = Gauges(config)
        begin = time.monotonic()
        _log.info("getting ready; the first start compiles the learner, which takes a while")
        merge.warm_up()
        encode_rows(np.zeros((1, 1)))
        self._factory.warm_up()
        tune_garbage_collector()
        self._startup_seconds = time.monotonic() - begin

    def stop(self) -> None:
        """Finish the batch, write the models whole, and return from `run`."""
        _log.info("stopping after this batch; a second signal ends at once")
        self._stopping.set()

    def run(self) -> None:
        """Work until `stop`.

        Raises
        ------
        FencedError
            If another worker took over this one's instance name.
        StateError
            If what the topics hold does not fit together.
        ConfigError
            If the address for gauges cannot be listened on.
        """
        # Said no sooner: whoever reads it may send a signal, which is heeded only from here on.
        _log.info("ready", instance=self._instance, seconds=round(self._startup_seconds, 1))
        with serve_metrics(self._gauges, self.config.metrics.address):
            self._run_sessions()

    def _run_sessions(self) -> None:
        wait = 1.0
        while not self._stopping.is_set():
            try:
                new_model = self._factory.new_model
                with Session(self.config, self._instance, new_model, self._gauges, self._settings) as session:
                    wait = 1.0
                    try:
                        session.run(self._stopping.is_set)
                    except KafkaException as error:
                        if is_fenced(error) and session.membership.replaced():
                            raise FencedError(
                                f"another worker with kafka.instance = {self._instance} has taken over "
                                f"({error_text(error)}). Give every worker a name of its own"
                            ) from error
                        raise
            except KafkaException as error:
                _log.warning("starting over from the log", reason=error_text(error), wait_s=wait)
                self._stopping.wait(wait)
                wait = min(2 * wait, MAX_BACKOFF)
