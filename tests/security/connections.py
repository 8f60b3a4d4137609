"""Wrong settings of a connection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pipeline.broker.launch import free_ports
from tests.security.refusal import Endpoint, Refusal, refused
from tests.support import cluster as clusters

COMMAND = ("topics", "check")
AT_ONCE = 4


def refusals(cluster: clusters.Cluster, folder: Path) -> Iterator[Refusal]:
    """Try each of the `wrong` settings, some at a time: most of the time is spent on waiting for a broker.

    Each command has seconds to find out what is wrong, which more of them at once would need for themselves.
    """

    def refusal(case: str, settings: Mapping[str, Any]) -> Refusal:
        own = folder / case
        own.mkdir()
        return refused(case, COMMAND, Endpoint(settings), own)

    cases = wrong(cluster)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(refusal, cases, cases.values())


def wrong(cluster: clusters.Cluster) -> dict[str, Mapping[str, Any]]:
    """Return settings that reach no broker, by what is wrong with them."""
    password, certificate = cluster.client_settings("worker"), cluster.client_settings("worker", "SSL")
    plain = cluster.client_settings()
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    return {
        "wrong password": password | {"sasl.password": "another"},
        "unknown user": password | {"sasl.username": "nobody"},
        "wrong SASL mechanism": password | {"sasl.mechanism": "PLAIN"},
        "no authority": without(password, "ssl.ca.location"),
        "expired certificate": cluster.client_settings("worker", "EXPIRED"),
        "certificate of another host": cluster.client_settings("worker", "OTHER_HOST"),
        "no client certificate": without(certificate, "ssl.certificate.location", "ssl.key.location"),
        "no TLS where the broker wants it": plain | {"bootstrap.servers": password["bootstrap.servers"]},
        "TLS where the broker has none": password | {"bootstrap.servers": plain["bootstrap.servers"]},
        "no SASL where the broker wants it": without(
            password | {"security.protocol": "SSL"}, "sasl.mechanism", "sasl.username", "sasl.password"
        ),
        "nothing listens": {"bootstrap.servers": nobody},
        "unknown name": {"bootstrap.servers": "kafka.invalid:9092"},
        "no password": without(password, "sasl.password"),
        "misspelt setting": password | {"sasl.pasword": "worker-secret"},
        "missing file of the authority": password | {"ssl.ca.location": "/nowhere/ca.pem"},
    }


def without(settings: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the settings but for some."""
    return {name: value for name, value in settings.items() if name not in names}
