from __future__ import annotations

import io
import re
import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner

from pipeline.broker.launch import free_ports
from pipeline.cli import app
from pipeline.config.settings import Config, Metrics
from pipeline.errors import ConfigError, ForksError
from pipeline.monitoring.counts import STATUSES
from pipeline.monitoring.explanations import ExplainedPrediction, ScoreTerm
from pipeline.monitoring.metrics import WorkerMetrics
from pipeline.monitoring.monitor import Monitor
from pipeline.monitoring.page import StatusPage
from pipeline.monitoring.quality import CONSTANT, RUNNING_MEANS, LearnerQuality, WindowMetrics
from pipeline.monitoring.readiness import Reason, Vitals
from pipeline.monitoring.status import Status, history_of, status_of
from pipeline.tools.top.asking import NoAnswerError, WorkerAddress
from pipeline.tools.top.screen import StatusScreen
from pipeline.worker.worker import serve_monitor
from tests.pipeline.monitoring.test_status import INFO, counts, sample

HOSTILE = "[red]x\x1b[2J\u202e"
QUALITY = {
    "champion": LearnerQuality("champion", 0.25, 0.75, 0.5, 0.01),
    RUNNING_MEANS: LearnerQuality(RUNNING_MEANS, 0.3, 0.7),
    CONSTANT: LearnerQuality(CONSTANT, 0.5, 0.5),
}
ERRORS = {"champion": LearnerQuality("champion", mean_absolute_error=3.25, root_mean_squared_error=4.5)}
TERMS = [
    ScoreTerm("entity", "user", 0.75),
    ScoreTerm("bias", "bias", -0.5),
    ScoreTerm("kernel", "kernel", 0.0),
]


def metrics(quality: dict[str, LearnerQuality]) -> WorkerMetrics:
    explained = ExplainedPrediction(
        0, 3, HOSTILE, {"user": "u7", "[b]e": "[i]v"}, 5, 0.25, 0.5622, True, TERMS
    )
    return WorkerMetrics(
        states={0: "running"},
        counts={0: counts(1234)},
        windows={0: WindowMetrics(77, quality)},
        explanations=[explained],
        history=[sample(100.0, 0), sample(105.0, 50, champion=0.3), sample(110.0, 150, champion=0.2)],
    )


def shown(found: WorkerMetrics, width: int, reasons: Any = (), note: str = "") -> str:
    console = Console(record=True, width=width, file=io.StringIO())
    status = status_of(found, Vitals(5.0), reasons, INFO, now=7.0, clock=1e9, begun=1.0)
    console.print(StatusScreen(status, history_of(found.history), note))
    return console.export_text()


@pytest.mark.parametrize("width", [80, 160])
def test_the_screen_has_what_the_page_has(width: int) -> None:
    text = shown(metrics(QUALITY), width)
    for part in (
        "ready",
        "running means",
        "25.00%",
        "1,234",
        "labelled",
        "+0.7500",
        "-0.5000",
        "running",
        "u7",
    ):
        assert part in text
    assert re.search(r"^0 +running ", text, re.MULTILINE)
    assert "▅█ predictions per second" in text
    assert max(map(len, text.splitlines())) <= width


def test_what_was_sent_moves_no_cursor_and_sets_no_colour() -> None:
    text = shown(metrics(QUALITY), 200)
    assert r"[red]x\x1b[2J\u202e" in text
    assert "[b]e" in text
    assert "[i]v" in text
    assert "\x1b" not in text


def test_numbers_are_shown_by_their_error() -> None:
    text = shown(metrics(ERRORS), 160)
    assert "3.25" in text
    assert "█▆ mean absolute error, champion" in text
    assert "mistakes" not in text


@pytest.mark.parametrize("quality", [QUALITY, ERRORS])
def test_the_screen_has_the_words_of_the_page(
    quality: dict[str, LearnerQuality], monkeypatch: pytest.MonkeyPatch
) -> None:
    page, words = StatusPage.load().html.decode().lower(), list[str]()
    sent = {"interactions", "labels", "predictions", "outcomes", *STATUSES, "user", r"[b]e"}

    def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], ids: int = 0) -> str:
        words.extend(heads)
        if title.startswith(("Throughput", "Joins")):
            words.extend(word for row in rows for word in row[0].split(", "))
        return title

    monkeypatch.setattr("pipeline.tools.top.screen._table", table)
    shown(metrics(quality), 160)
    own = {" ".join(word.lower().split()) for word in words if word[:1] not in {"", "=", "+"}} - sent
    assert {"event time lag", "crowded out", "learner", "topic", "predicted"} <= own
    assert {word for word in own if word not in page} == set()


def test_a_worker_that_has_done_nothing_says_so() -> None:
    text = shown(WorkerMetrics(), 100, [Reason("starting", "no session yet")], "no answer")
    for part in (
        "not ready",
        "no session yet",
        "no answer",
        "no labels yet",
        "no partition",
        "no prediction",
    ):
        assert part in text


@contextmanager
def served(found: WorkerMetrics) -> Iterator[str]:
    [port] = free_ports(1)
    settings = Config(metrics=Metrics(address=f"127.0.0.1:{port}"))
    monitor = Monitor(settings.metrics)
    monitor.metrics = found
    with serve_monitor(monitor, settings, "the-worker"):
        yield f"127.0.0.1:{port}"


def test_the_command_asks_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(metrics(QUALITY)) as address:
        printed = CliRunner().invoke(app, ["top", address, "--once"], env={"COLUMNS": "200"})
        assert printed.exit_code == 0
        assert "the-worker" in printed.output
        piped = CliRunner().invoke(app, ["top", address.partition(":")[2]], env={"COLUMNS": "200"})
        assert "the-worker" in piped.output
        text = CliRunner().invoke(app, ["top", "--json"], env={"FORKS_METRICS__ADDRESS": address}).output
        status = msgspec.json.decode(text, type=Status)
        assert status.predictions[0].event_id == HOSTILE
        assert sum(term.value for term in status.predictions[0].terms) == status.predictions[0].score


def test_where_nothing_answers_the_error_says_what_to_do() -> None:
    [port] = free_ports(1)
    with pytest.raises(NoAnswerError, match=r"127\.0\.0\.1:.*refused.*metrics\.address") as error:
        WorkerAddress(str(f"127.0.0.1:{port}")).status()
    assert error.value.exit_code == ForksError.exit_code
    with pytest.raises(ConfigError, match="an address is a host and a port"):
        WorkerAddress("nowhere")
    found = CliRunner().invoke(app, ["top"])
    assert isinstance(found.exception, ConfigError)
    assert "metrics.address" in str(found.exception)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"hello\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n" + b"[" * 100_000,
    ],
)
def test_what_is_no_worker_is_told_from_one(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            client, _ = listener.accept()
            with client, suppress(OSError):
                client.recv(4096)
                client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(NoAnswerError, match="answers at"):
            WorkerAddress(f"127.0.0.1:{listener.getsockname()[1]}").status()
        thread.join()
