"""Connect to the brokers, and say why that fails."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from pipeline.config.tree import Kafka
from pipeline.errors import BrokerError
from pipeline.kafka.clients import client_settings

CONFIRMATION: Final = 2.0
"""Seconds for which the client tries again after an error, before it is reported."""
CONNECT_TIMEOUT: Final = 10.0
"""Seconds for the first answer, while no error is known."""
ATTEMPT: Final = 0.25
"""Seconds of one attempt; errors are received between two of them."""

CAUSES: Final[tuple[tuple[str, str], ...]] = (
    (
        r"client SASL mechanism|Unsupported SASL mechanism|mechanism handshake failed",
        "it does not offer the mechanism {mechanism}: set sasl.mechanism to one that it names",
    ),
    (
        r"Authentication failed|invalid credentials|authentication error|SaslAuthenticat",
        "it refuses the user {user}: check sasl.username, sasl.password and sasl.mechanism",
    ),
    (r"certificate has expired", "its certificate has expired: the broker needs a new one"),
    (
        r"[Hh]ostname mismatch|IP address mismatch",
        "its certificate is for another host: name the brokers in kafka.bootstrap as their certificates do",
    ),
    (
        r"self.signed certificate|unable to get (local )?issuer|certificate verify failed|unknown ca",
        "its certificate is not signed by an authority that this client trusts: set ssl.ca.location to the "
        "file with the certificate of the brokers' authority",
    ),
    (
        r"certificate required|bad certificate|handshake failure|client authentication",
        "it wants a certificate of this client: set ssl.certificate.location and ssl.key.location",
    ),
    (
        r"wrong version number|packet length too long|record layer|unexpected eof|SSL",
        "it does not speak TLS there, or another version of it: check kafka.bootstrap and security.protocol",
    ),
    (r"Failed to resolve", "its name cannot be resolved: check kafka.bootstrap"),
    (
        r"Disconnected|Connection closed|security\.protocol|ApiVersion|Receive failed",
        "it closes the connection: it may want TLS or SASL, set security.protocol to SASL_SSL, SSL or "
        "SASL_PLAINTEXT in [kafka.client]",
    ),
    (
        r"refused|unreachable|No route|timed out|timeout",
        "nothing answers there. Start a Kafka with `forks broker start`, or name yours with --bootstrap or "
        "FORKS_KAFKA__BOOTSTRAP",
    ),
)
"""Patterns of the client's error texts, the most telling first, and what they mean for the user."""


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
    """

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        errors: list[KafkaError] = []
        super().__init__(client_settings(kafka) | {"log_level": 0, "error_cb": errors.append})
        begin = time.monotonic()
        while True:
            try:
                self.list_topics(timeout=ATTEMPT)
            except KafkaException as error:
                errors.append(error.args[0])
            else:
                return
            self.poll(0)  # receive the errors of single connections
            elapsed = time.monotonic() - begin
            known = any(error.code() != KafkaError._TIMED_OUT for error in errors)
            if elapsed > (CONFIRMATION if known else CONNECT_TIMEOUT):
                raise BrokerError(connection_failure(kafka, errors))


def connection_failure(kafka: Kafka, errors: Sequence[KafkaError]) -> str:
    """Say why no broker could be reached.

    Parameters
    ----------
    kafka
        The connection that was tried.
    errors
        What the client has reported.

    Returns
    -------
    str
        One sentence with the cause, the client's own words, and what to do.
    """
    values = {
        "mechanism": kafka.client.get("sasl.mechanism", kafka.client.get("sasl.mechanisms", "GSSAPI")),
        "user": kafka.client.get("sasl.username", "of this client"),
    }
    for pattern, cause in CAUSES:
        for error in errors:
            if re.search(pattern, error.str()):
                return f"no Kafka answers at {kafka.bootstrap}: {cause.format(**values)} ({_short(error)})"
    return f"no Kafka answers at {kafka.bootstrap}: {_short(errors[-1])}"


def _short(error: KafkaError) -> str:
    """Return the client's words without the state in which they were said."""
    return re.sub(r" \(after \d+ms in state \w+.*\)$", "", error.str())
