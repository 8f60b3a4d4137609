"""Find out why a broker does not answer, with a connection of one's own.

librdkafka has one text for every certificate that it refuses, and none for a broker that speaks TLS where
the client does not.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from enum import IntEnum, auto
from pathlib import Path
from typing import Any, Final, NamedTuple

PROBE_TIMEOUT: Final = 0.7
"""Seconds for each step of a connection."""
DEFAULT_PORT: Final = 9092
MAX_PROBES: Final = 3
"""Addresses that are tried, at most."""


class Step(IntEnum):
    """How far a connection has come."""

    RESOLVE = auto()
    CONNECT = auto()
    HANDSHAKE = auto()
    REQUEST = auto()


class Finding(NamedTuple):
    """Where a connection failed, and why."""

    step: Step
    cause: str


def probe(settings: Mapping[str, Any]) -> Finding:
    """Connect to the bootstrap servers and return the failure that came last on the way.

    Parameters
    ----------
    settings
        Settings of a client that reaches no broker.

    Returns
    -------
    Finding
        How far it came; the cause, and what to do.
    """
    servers = str(settings["bootstrap.servers"]).split(",")[:MAX_PROBES]
    return max(_probe(server.strip(), settings) for server in servers)


def _probe(server: str, settings: Mapping[str, Any]) -> Finding:
    host, port = host_and_port(server)
    try:
        connection = socket.create_connection((host, port), PROBE_TIMEOUT)
    except socket.gaierror:
        return Finding(Step.RESOLVE, f"the name {host} cannot be resolved: check --bootstrap")
    except OSError as error:
        return Finding(
            Step.CONNECT,
            f"nothing listens on {server} ({error.strerror or error}). Start a Kafka with `forks broker "
            "start`, or name yours with --bootstrap or FORKS_KAFKA__BOOTSTRAP",
        )
    protocol = str(settings.get("security.protocol", "plaintext")).upper()
    with connection:
        if protocol.endswith("SSL"):
            failure = _handshake_failure(connection, host, settings)
            if failure is not None:
                return Finding(Step.HANDSHAKE, failure)
        elif _speaks_tls(connection, host):
            remedy = "SASL_SSL" if protocol.startswith("SASL") else "SSL or SASL_SSL"
            return Finding(
                Step.HANDSHAKE,
                f"{server} speaks TLS: set security.protocol to {remedy}, and ssl.ca.location",
            )
    if protocol.startswith("SASL"):
        cause = f"{server} is connected, but does not answer: check that it is a Kafka broker with SASL"
    else:
        remedy = "SASL_SSL" if protocol.endswith("SSL") else "SASL_PLAINTEXT"
        cause = (
            f"{server} is connected, but does not answer: it may want SASL (set security.protocol to "
            f"{remedy} in [kafka.client]), or is no Kafka broker"
        )
    return Finding(Step.REQUEST, cause)


def host_and_port(server: str) -> tuple[str, int]:
    """Split an address of librdkafka into host and port.

    Examples
    --------
    >>> host_and_port("SASL_SSL://[::1]:9093"), host_and_port("kafka")
    (('::1', 9093), ('kafka', 9092))
    """
    address = server.rpartition("://")[2]
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        host, port = address, str(DEFAULT_PORT)
    return host.strip("[]"), int(port)


def _handshake_failure(connection: socket.socket, host: str, settings: Mapping[str, Any]) -> str | None:
    """Return why the TLS handshake fails, None if it succeeds."""
    try:
        context = _context(settings)
    except (OSError, ssl.SSLError) as error:
        return f"the certificates in ssl.ca.location cannot be read: {error}"
    try:
        context.wrap_socket(connection, server_hostname=host).close()
    except ssl.SSLCertVerificationError as error:
        reason = error.verify_message.rstrip(".")
        return f"the broker's certificate is refused ({reason}): {_remedy(error, host)}"
    except (OSError, ssl.SSLError) as error:
        closed = isinstance(error, CLOSED)
        what = "it closed the connection" if closed else getattr(error, "reason", None) or error
        return (
            f"{host} does not speak TLS on this port ({what}): check the port in --bootstrap, or "
            "security.protocol in [kafka.client]"
        )
    return None


CLOSED: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionError)
"""What a closed connection raises; which of them depends on the version of Python."""
X509_EXPIRED: Final = 10
X509_NOT_YET_VALID: Final = 9
X509_HOST_MISMATCH: Final = frozenset({62, 64})  # a name, an IP address
"""OpenSSL's codes of refused certificates."""


def _remedy(error: ssl.SSLCertVerificationError, host: str) -> str:
    if error.verify_code == X509_EXPIRED:
        return "the broker needs a new one"
    if error.verify_code == X509_NOT_YET_VALID:
        return "check the clocks of this machine and the broker's"
    if error.verify_code in X509_HOST_MISMATCH:
        return f"name the brokers in --bootstrap as their certificates do, which is not {host}"
    return "set ssl.ca.location in [kafka.client] to the file with the certificate of the brokers' authority"


def _context(settings: Mapping[str, Any]) -> ssl.SSLContext:
    location = settings.get("ssl.ca.location")
    folder = location is not None and Path(location).is_dir()
    context = ssl.create_default_context(
        cafile=None if folder else location,
        capath=location if folder else None,
        cadata=settings.get("ssl.ca.pem"),
    )
    verifies = str(settings.get("enable.ssl.certificate.verification", True)).lower() != "false"
    names_host = settings.get("ssl.endpoint.identification.algorithm", "https") == "https"
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # default from Python 3.13 on; librdkafka takes more
    context.check_hostname = verifies and names_host
    if not verifies:
        context.verify_mode = ssl.CERT_NONE
    return context


def _speaks_tls(connection: socket.socket, host: str) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # only whether it answers
    try:
        context.wrap_socket(connection, server_hostname=host).close()
    except (OSError, ssl.SSLError):
        return False
    return True
