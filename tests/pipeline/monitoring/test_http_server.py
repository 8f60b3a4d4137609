"""The HTTP server, asked by real sockets that mean no good."""

from __future__ import annotations

import json
import re
import socket
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from http.client import HTTPConnection
from typing import Any
from urllib.request import urlopen

import psutil
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pipeline.broker.launch import free_ports
from pipeline.config.settings import Config, Features, Join, Metrics, Worker, host_and_port
from pipeline.errors import ConfigError
from pipeline.monitoring import application
from pipeline.monitoring.application import SERVER_LIMITS
from pipeline.monitoring.monitor import Monitor
from pipeline.worker.worker import serve_monitor
from tests.pipeline.monitoring.test_status import sample

SECONDS = 20.0
"""For an answer, on a busy machine."""


def config(address: str | None) -> Config:
    return Config(
        join=Join(max_pending=11, max_closed=12, early_bytes=13),
        features=Features(max_entities=14),
        worker=Worker(buffer=2**20, dead_letters=15),
        metrics=Metrics(address=address),
    )


def free_address() -> str:
    [port] = free_ports(1)
    return f"127.0.0.1:{port}"


@contextmanager
def served(address: str) -> Iterator[Monitor]:
    settings = config(address)
    monitor = Monitor(settings.metrics)
    with serve_monitor(monitor, settings, "worker"):
        yield monitor


@pytest.fixture
def server() -> Iterator[tuple[str, Monitor]]:
    address = free_address()
    with served(address) as monitor:
        yield address, monitor


def ask(address: str, path: str, method: str = "GET") -> tuple[int, bytes]:
    connection = HTTPConnection(*host_and_port(address), timeout=SECONDS)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def connect(address: str, begin: bytes = b"") -> socket.socket:
    client = socket.create_connection(host_and_port(address), timeout=SECONDS)
    client.sendall(begin)
    return client


def ended(client: socket.socket) -> bool:
    """Whether the server ends the connection within the timeout."""
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return True


def test_a_scrape_finds_limits_and_process_before_there_is_a_partition(server: tuple[str, Monitor]) -> None:
    address, _ = server
    status, body = ask(address, "/metrics")
    lines = body.decode().splitlines()
    assert status == 200
    assert {line for line in lines if line.startswith("forks_") and "limit" in line} == {
        "forks_buffer_limit_bytes 1.048576e+06",
        "forks_pending_predictions_limit 11.0",
        "forks_closed_events_limit 12.0",
        "forks_early_label_limit_bytes 13.0",
        "forks_entities_limit 14.0",
        "forks_dead_letters_per_minute_limit 15.0",
    }
    assert "# TYPE forks_pending_predictions gauge" in lines
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)


def test_openmetrics_are_given_to_who_asks_for_them(server: tuple[str, Monitor]) -> None:
    connection = HTTPConnection(*host_and_port(server[0]), timeout=SECONDS)
    connection.request("GET", "/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    answer = connection.getresponse()
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    families = text_string_to_metric_families(answer.read().decode())  # type: ignore[no-untyped-call]  # lacks its types
    names = {family.name for family in families}
    assert {"forks_worker", "forks_output_records", "process_cpu_seconds"} <= names
    connection.close()


def test_probes_follow_the_worker(server: tuple[str, Monitor]) -> None:
    address, monitor = server
    status, body = ask(address, "/readyz")
    assert status == 503
    assert [reason["code"] for reason in json.loads(body)["reasons"]] == ["starting"]
    monitor.session_begun()
    monitor.assigned([])
    status, body = ask(address, "/readyz")
    assert status == 200
    assert "no partitions" in json.loads(body)["note"]
    assert ask(address, "/livez")[0] == 200
    monitor.vitals = monitor.vitals._replace(beat=time.monotonic() - 1_000.0)
    assert ask(address, "/livez")[0] == 503
    assert "loop_stalled" in ask(address, "/readyz")[1].decode()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
def test_only_reads_are_answered(server: tuple[str, Monitor], method: str) -> None:
    for path in ("/metrics", "/livez", "/readyz", "/", "/v1/status", "/v1/history"):
        assert ask(server[0], path, method)[0] == 405


def test_a_head_has_no_body_and_other_paths_are_not_there(server: tuple[str, Monitor]) -> None:
    assert ask(server[0], "/livez", "HEAD") == (200, b"")
    assert ask(server[0], "/v1/status", "HEAD") == (200, b"")
    assert ask(server[0], "/v1")[0] == 404
    assert ask(server[0], "/../../etc/passwd")[0] == 404


def answer(address: str, path: str, **headers: str) -> tuple[int, Any, bytes]:
    """Status, headers and body."""
    connection = HTTPConnection(*host_and_port(address), timeout=SECONDS)
    connection.request("GET", path, headers=headers)
    found = connection.getresponse()
    body = found.read()
    connection.close()
    return found.status, found.headers, body


def test_the_page_may_run_its_own_script_and_nothing_else(server: tuple[str, Monitor]) -> None:
    status, headers, body = answer(server[0], "/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
    for element in ("script", "style"):
        [text] = re.findall(rf"<{element}>(.*?)</{element}>".encode(), body, re.DOTALL)
        allowed = f"{element}-src 'sha256-{b64encode(sha256(text).digest()).decode()}';"
        assert allowed in headers["content-security-policy"]


def test_what_the_page_asks_for_is_sent_anew_only_if_it_has_changed(server: tuple[str, Monitor]) -> None:
    address, monitor = server
    _, headers, body = answer(address, "/v1/status")
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
    assert json.loads(body)["worker"]["worker"] == "worker"
    _, headers, body = answer(address, "/v1/history")
    tag = headers["etag"]
    assert headers["cache-control"] == "no-cache"
    assert answer(address, "/v1/history", **{"if-none-match": tag})[::2] == (304, b"")
    monitor.metrics = monitor.metrics._replace(history=[sample(100.0, 0), sample(105.0, 5)])
    end = time.monotonic() + SECONDS
    while answer(address, "/v1/history", **{"if-none-match": tag})[0] != 200:
        assert time.monotonic() < end


@pytest.mark.parametrize(
    "request_text",
    [
        b"\0\1\2\3\r\n\r\n",
        b"GET /livez HTTP/9.9\r\n\r\n",
        b"GET /livez HTTP/1.1\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 100_000,
        b"GET /" + b"a" * 100_000,
        b"GET /livez HTTP/1.1\r\nhost: a\r\n" + b"x: y\r\n" * 20_000,
        b"POST /livez HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999\r\n\r\n" + b"z" * 100_000,
    ],
)
def test_requests_that_are_none_are_refused_and_cost_nothing(
    server: tuple[str, Monitor], request_text: bytes
) -> None:
    client = connect(server[0])
    with suppress(OSError):  # refused before it was all sent
        client.sendall(request_text)
    assert ended(client)
    client.close()
    assert ask(server[0], "/livez")[0] == 200


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server that gives a request half a second."""
    monkeypatch.setattr(application, "SERVER_LIMITS", SERVER_LIMITS._replace(patience=0.5))
    address = free_address()
    with served(address):
        yield address


def test_slow_clients_are_cut_off(hurried: str) -> None:
    """Half a request, nothing at all, a line at a time, an answer that is not read."""
    address = hurried
    half, silent = connect(address, b"GET /livez HTTP/1.1\r\nhost:"), connect(address)
    unread = connect(address, b"GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n" * 200)
    assert ask(address, "/livez")[0] == 200
    assert ended(half)
    assert ended(silent)
    trickle = connect(address)
    with pytest.raises(OSError, match=r"reset|[Pp]ipe"):  # noqa: PT012 - until the server has had enough
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            trickle.sendall(b"G")
            time.sleep(0.05)
    for client in (half, silent, unread, trickle):
        client.close()


def test_thousands_of_connections_neither_fill_the_server_nor_hold_up_a_probe(
    server: tuple[str, Monitor],
) -> None:
    address, _ = server
    before = psutil.Process().num_fds()
    with ExitStack() as clients:
        for number in range(1_500):
            client = socket.socket()
            clients.callback(client.close)
            client.setblocking(False)
            client.connect_ex(host_and_port(address))
            if number % 300 == 299:
                assert ask(address, "/livez")[0] == 200
                theirs = psutil.Process().num_fds() - before - (number + 1)
                assert theirs <= 1.5 * SERVER_LIMITS.connections
    assert ask(address, "/readyz")[0] == 503


def test_an_address_of_ipv6_answers_scrapes() -> None:
    with socket.socket(socket.AF_INET6) as free:
        try:
            free.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
        port = free.getsockname()[1]
    with served(f"[::1]:{port}"), urlopen(f"http://[::1]:{port}/metrics", timeout=SECONDS) as response:
        assert "forks_entities_limit 14.0" in response.read().decode()


def test_a_host_that_nobody_knows_is_a_wrong_setting() -> None:
    with (
        pytest.raises(ConfigError, match=r"^metrics\.address: nowhere\.invalid:9100 cannot be listened on"),
        served("nowhere.invalid:9100"),
    ):
        pass


def test_an_address_is_free_again_afterwards_and_in_use_meanwhile() -> None:
    address = free_address()
    for _ in range(2):
        with served(address):
            pass
    with (
        served(address),
        pytest.raises(ConfigError, match=rf"^metrics\.address: {address} cannot be listened on: .*in use"),
        served(address),
    ):
        pass


def listening() -> set[str]:
    """The addresses at which this process takes connections."""
    connections = psutil.Process().net_connections("tcp")
    return {f"{at.laddr.ip}:{at.laddr.port}" for at in connections if at.status == psutil.CONN_LISTEN}


def test_a_port_alone_is_served_to_this_machine_only_and_none_not_at_all() -> None:
    before, [port] = listening(), free_ports(1)
    with served(f"{port}"):
        assert listening() == before | {f"127.0.0.1:{port}"}
    settings = config(None)
    with serve_monitor(Monitor(settings.metrics), settings, "worker"):
        assert listening() == before
