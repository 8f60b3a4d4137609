"""Run the steps of the demo: create topics, send data, kill a worker and let it recover, serve scores."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen
from uuid import uuid4

import msgspec

from pipeline.broker.launch import free_ports
from pipeline.config.pointer import nested, parts_of
from pipeline.config.settings import Kafka
from pipeline.config.stream import Stream
from pipeline.config.stream_features import DerivedFeature
from pipeline.config.topics import Topics
from pipeline.errors import ForksError
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.topics import create
from pipeline.log.live import ProcessedCounter, RecordCounter
from pipeline.records.encoding import encode
from pipeline.sources.kuairec import ITEMS, Events
from pipeline.sources.messages import MessageWriter, writer_of
from pipeline.sources.replay import Replay
from pipeline.sources.schedule import order_of

FORKS = (sys.executable, "-c", "from pipeline.cli import main; main()")
STOP_TIMEOUT = 60.0
"""Seconds for a worker to stop."""
STALL_TIMEOUT = 120.0
"""Seconds without progress after which the demo fails."""


class DemoData(NamedTuple):
    """What a demo sends, and what its worker needs to know of it."""

    events: Events
    stream: Stream
    environment: Mapping[str, str]
    """Settings of the worker, by variable."""

    @property
    def messages(self) -> int:
        """The number of interactions and labels."""
        return len(order_of(self.events))


class DemoRun(NamedTuple):
    """Measurements of the worker in the demo."""

    seconds: float
    """Seconds from the first prediction to the last outcome, including kill and recovery."""
    killed_at: int
    """Number of outcomes that were committed when the worker was killed."""
    recovery_s: float | None
    """Seconds from the kill to the next new prediction; None if all was done before the kill."""


def demo_kafka(bootstrap: str) -> Kafka:
    """Return the connection of a demo, with a unique prefix of topics and group."""
    prefix = f"demo-{uuid4().hex[:6]}-"
    return Kafka(bootstrap=bootstrap, prefix=prefix, group=f"{prefix}group")


@contextmanager
def compiling(log: Path, notify: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """Compile what a worker calls, beside this block.

    Parameters
    ----------
    log
        File for errors.
    notify
        Function to call with a text if something is waited for.

    Yields
    ------
    callable
        Waits until all is compiled.
    """
    with log.open("ab") as file:
        # In a session of its own: Ctrl-C is left to the demo, which ends it with the process that it starts.
        command = (sys.executable, "-m", "pipeline.worker.warm_up")
        process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)

    def wait() -> None:
        if process.poll() is None:
            notify("waiting for the compiler, which is needed once; this takes some seconds")
            process.wait()

    try:
        yield wait
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def fill_topics(data: DemoData, kafka: Kafka, progress: Callable[[int], None]) -> None:
    """Create the topics and send all interactions and labels."""
    create(Admin(kafka), Topics(kafka.prefix, stream=data.stream), partitions=1, replication=1)
    Replay(data.events, kafka, stream=data.stream).run(None, Event(), progress)


def consume(
    kafka: Kafka,
    data: DemoData,
    log: Path,
    *,
    notify: Callable[[str], None],
    progress: Callable[[int], None],
) -> DemoRun:
    """Run a worker on all messages, kill it in the middle, and start it again.

    Parameters
    ----------
    kafka
        Connection of `demo_kafka`, with filled topics.
    data
        What the topics were filled with.
    log
        File for the worker's log.
    notify
        Function to call with a text on each step.
    progress
        Function to call with the number of committed outcomes.

    Returns
    -------
    DemoRun
        Measurements of the worker.

    Raises
    ------
    ForksError
        If the worker ends by itself, or makes no progress for `STALL_TIMEOUT` seconds.
    """
    topics, labels = Topics(kafka.prefix, stream=data.stream), data.events.labels
    with (
        RecordCounter(kafka, topics.predictions) as predictions,
        RecordCounter(kafka, topics.outcomes) as outcomes,
        ProcessedCounter(kafka, topics.inputs) as inputs,
    ):

        def done() -> bool:
            return inputs.count() == data.messages

        with _worker(kafka, data.environment, log) as worker:
            _wait(predictions, lambda: predictions.count > 0 or done(), worker, log)
            begin = time.monotonic()
            _wait(outcomes, lambda: outcomes.count >= labels // 2 or done(), worker, log, progress)
            killed_at = outcomes.count
            worker.send_signal(signal.SIGKILL)
            worker.wait()
        killed = end = time.monotonic()
        while predictions.poll():
            pass
        before, recovery = predictions.count, None
        if done():
            notify("kill -9 when all was done: there are too few events to stop halfway")
        else:
            notify(f"kill -9 after {killed_at:,} outcomes; the same worker starts again")
            with _worker(kafka, data.environment, log) as worker:
                _wait(predictions, lambda: predictions.count > before or done(), worker, log)
                recovery = time.monotonic() - killed
                notify(f"recovered: the next prediction was committed {recovery:.1f} s after the kill")
                _wait(outcomes, done, worker, log, progress)
                end = time.monotonic()
                worker.send_signal(signal.SIGTERM)
                worker.wait(STOP_TIMEOUT)
        while outcomes.poll():
            progress(outcomes.count)
        return DemoRun(end - begin, killed_at, recovery)


def answers(url: str, timeout: float) -> bool:
    """Return whether a server answers a GET with a status of success, within so many seconds."""
    try:
        with urlopen(url, timeout=timeout):
            return True
    except HTTPError as error:
        error.close()
    except OSError:
        pass
    return False


class DemoFollower:
    """A process of `forks serve`.

    Parameters
    ----------
    process
        The process.
    url
        Where it answers.
    request
        An example of a request.
    log
        File of its log.
    """

    def __init__(self, process: subprocess.Popen[bytes], url: str, request: bytes, log: Path) -> None:
        self.url = url
        self._process = process
        self._request = request
        self._log = log
        self._stopped = False

    @property
    def curl_line(self) -> str:
        """A line for a shell, which asks for scores."""
        text = shlex.quote(self._request.decode())
        return f"curl {self.url}/v1/score -H 'content-type: application/json' -d {text}"

    def wait_until_ready(self) -> None:
        """Wait until it answers, or is stopped."""
        end = time.monotonic() + STALL_TIMEOUT
        while not self._stopped:
            if answers(f"{self.url}/readyz", STOP_TIMEOUT):
                return
            if self._process.poll() is not None or time.monotonic() > end:
                raise ForksError("the follower does not start. Its log ends:\n" + _end_of(self._log))
            time.sleep(0.1)

    def stop(self) -> None:
        """Tell it to end; a signal handler may call this."""
        self._stopped = True
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> None:
        """Wait until it has ended."""
        if self._process.wait() != 0:
            raise ForksError("the follower has ended. Its log ends:\n" + _end_of(self._log))


@contextmanager
def serving(kafka: Kafka, data: DemoData, log: Path) -> Iterator[DemoFollower]:
    """Run a follower of the demo's worker inside the block.

    Parameters
    ----------
    kafka
        Connection of `demo_kafka`.
    data
        What the worker has learned.
    log
        File for the follower's log.
    """
    [port] = free_ports(1)
    address = f"127.0.0.1:{port}"
    with _forks("serve", kafka, data.environment, log, "--address", address) as process:
        yield DemoFollower(process, f"http://{address}", example_request(data), log)


def example_request(data: DemoData, items: int = 3) -> bytes:
    """Return a request for scores: the key of the last event, and what the last events happened with.

    Parameters
    ----------
    data
        What was sent.
    items
        The number of candidates, at most.
    """
    stream, writer = data.stream, writer_of(data.stream)
    if stream.has_slates:
        return _request_of_slate(data, writer, items)
    rows = data.events.frame.select(writer.columns).tail(items).rows()
    keep = [*stream.entities.values()]
    keep += [each.field for each in stream.features.values() if not isinstance(each, DerivedFeature)]
    key = stream.interactions.event_id if stream.key_entity is None else keep.pop(stream.key_entity)
    messages = [msgspec.json.decode(writer.interaction(row)) for row in rows]
    beside = nested([(parts_of(key), _at(messages[-1], key))])
    candidates = [_part(message, keep) for message in messages]
    at = rows[-1][writer.columns.index("timestamp")]
    return encode({**beside, "items": candidates, "time": at})


def _request_of_slate(data: DemoData, writer: MessageWriter, items: int) -> bytes:
    """Return a request with what the last slate happened with, and its first items as candidates."""
    stream, frame = data.stream, data.events.frame
    last = frame.filter(frame[ITEMS].is_not_null()).select(writer.columns).tail(1).row(0)
    message = msgspec.json.decode(writer.interaction(last))
    asked = [
        (name, pointer)
        for name, pointer in stream.pointers(stream.interactions)
        if name.startswith(("entities.", "features.")) or (name == "event_id" and stream.key_entity is None)
    ]
    shown = _at(message, stream.interactions.items or "")[:items]
    of_item, of_message = (
        [pointer for name, pointer in asked if stream.is_item_field(name) is own] for own in (True, False)
    )
    candidates = [_part(item, of_item) for item in shown]
    at = last[writer.columns.index("timestamp")]
    return encode({**_part(message, of_message), "items": candidates, "time": at})


def _part(message: Any, pointers: Sequence[str]) -> dict[str, Any]:
    """Return an object with these fields of another, as far as it has them."""
    fields = [(parts_of(each), _at(message, each)) for each in pointers]
    return nested((parts, value) for parts, value in fields if value is not None)


def _at(message: Any, pointer: str) -> Any:
    """Return a field of a message, None if it has none."""
    for part in parts_of(pointer):
        message = message.get(part) if isinstance(message, dict) else None
    return message


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])


def _worker(
    kafka: Kafka, environment: Mapping[str, str], log: Path
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    return _forks("run", kafka, environment, log, "--instance", "demo")


@contextmanager
def _forks(
    command: str, kafka: Kafka, environment: Mapping[str, str], log: Path, *more: str
) -> Iterator[subprocess.Popen[bytes]]:
    options = ("--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--group", kafka.group)
    with log.open("ab") as file:
        process = subprocess.Popen(
            (*FORKS, command, *options, *more),
            stdout=file,
            stderr=file,
            env=os.environ | environment,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait(
    counter: RecordCounter,
    reached: Callable[[], bool],
    worker: subprocess.Popen[bytes],
    log: Path,
    progress: Callable[[int], None] = lambda _: None,
) -> None:
    """Count the records of a topic until something is reached."""
    last = time.monotonic()
    while not reached():
        if counter.poll():
            last = time.monotonic()
            progress(counter.count)
        ended = worker.poll()
        if ended is not None or time.monotonic() - last > STALL_TIMEOUT:
            problem = "makes no progress" if ended is None else f"ended with exit code {ended}"
            raise ForksError(
                f"the worker {problem} at {counter.count} records in {counter.topic}. "
                "Its log ends:\n" + _end_of(log)
            )
