"""Connect to the brokers, and say why that fails."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from pipeline.config.settings import Kafka
from pipeline.errors import BrokerError
from pipeline.kafka.access.new_client import client_settings, new_client
from pipeline.kafka.access.probe import Finding, Step, probe

CONFIRMATION: Final = 1.5
"""Seconds for which the client tries again after an error, before it is reported."""
CONNECT_TIMEOUT: Final = 10.0
"""Seconds for the first answer, while no error is known."""
ATTEMPT: Final = 0.25
"""Seconds of one attempt; errors are received between two of them."""


class Admin(AdminClient):
    """An administrative client that has reached a broker.

    Parameters
    ----------
    kafka
        Where the brokers are, and how to speak to them.

    Raises
    ------
    BrokerError
        No broker answers, for a reason that the error names.
    ConfigError
        A setting is unknown, or its value is refused.
    """

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        errors: list[KafkaError] = []
        settings = client_settings(kafka) | {"log_level": 0, "error_cb": errors.append}
        new_client(super().__init__, settings)
        begin, silent = time.monotonic(), False
        while True:
            try:
                self.list_topics(timeout=ATTEMPT)
            except KafkaException as error:
                failure = error
            else:
                return
            self.poll(0)  # receives the errors of single connections
            known = errors or failure.args[0].code() != KafkaError._TIMED_OUT
            waited = time.monotonic() - begin
            if waited > (CONFIRMATION if known and not silent else CONNECT_TIMEOUT):
                found = connection_failure(kafka, errors)
                silent = found.step is Step.REQUEST  # a broker that has much to do answers later
                if not silent or waited > CONNECT_TIMEOUT:
                    raise BrokerError(f"no Kafka answers at {kafka.bootstrap}: {found.cause}") from failure


def connection_failure(kafka: Kafka, errors: Sequence[KafkaError]) -> Finding:
    """Say why no broker could be reached.

    Parameters
    ----------
    kafka
        The connection that was tried.
    errors
        What the client has reported.

    Returns
    -------
    Finding
        How far a connection comes; the cause, and what to do.
    """
    settings = client_settings(kafka)
    for error in errors:
        text = error.str()
        if error.code() == KafkaError._AUTHENTICATION:
            return Finding(Step.HANDSHAKE, _authentication_failure(text, settings.get("sasl.username")))
        if re.search(r"alert (bad certificate|certificate required|handshake failure)", text):
            return Finding(
                Step.HANDSHAKE,
                "it wants a certificate of this client: set ssl.certificate.location and ssl.key.location "
                "in [kafka.client]",
            )
    return probe(settings)


def _authentication_failure(text: str, user: object) -> str:
    if offered := re.search(r"supported mechanisms: (.*?)( \(after|$)", text):
        return f"it does not offer this SASL mechanism: set sasl.mechanism in [kafka.client] to {offered[1]}"
    words = re.sub(r"^.*?: | \(after \d+ms in state .*\)$", "", text)
    return f"it refuses user {user}: check sasl.username and sasl.password in [kafka.client] ({words})"
