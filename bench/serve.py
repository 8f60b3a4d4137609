"""Scores over HTTP: 200 candidates of one user, beside an echo of the same body on the same server.

The same server also answers with learners of River and scikit-learn, which look up as many features of user
and video as FORKS makes of its running statistics. Each server is a process of its own, asked over one
connection by this one, in turns. The model learns nothing meanwhile: what following costs is not in this.
"""

from __future__ import annotations

import http.client
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from river import feature_extraction, linear_model
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from starlette.types import ASGIApp, Receive, Scope, Send

from bench.options import Options
from bench.sizes import ENTITIES, snapshot_bytes
from pipeline.broker.launch import free_ports
from pipeline.config.settings import Config
from pipeline.model.factory import ModelFactory
from pipeline.monitoring.http_server import listening, serve
from pipeline.records.fields import Id
from pipeline.serving.answers import FollowerFigures
from pipeline.serving.application import application, server_limits
from pipeline.serving.served_model import ServedModel

CANDIDATES: Final = 200
REQUESTS: Final = 1_000
"""Requests of each server in a run."""
RUNS: Final = 5
FEATURES: Final = 5
"""Running features of a user, and of a video."""
COMPONENTS: Final = 100
"""Random features of a learner with a kernel."""


class Request(msgspec.Struct):
    """What the servers of other learners decode."""

    user_id: int
    items: list[dict[str, int]]


class OneModel:
    """What `application` needs of a follower, with a model that follows nothing."""

    figures = FollowerFigures((), 0.0, None)

    def __init__(self) -> None:
        model = ModelFactory(Config()).new_model()
        snapshot_bytes(model)  # learns: the sketch is beyond its first stage, and entities are known
        self._served = ServedModel(0, model, {}, 0)

    def partition_of(self, _: Id) -> int:
        """Return the partition of a key."""
        return 0

    @contextmanager
    def lend_model(self, _: int) -> Iterator[ServedModel]:
        """Lend the model of a partition, of which there is one."""
        yield self._served


def _answering(answer: Callable[[bytes], bytes]) -> ASGIApp:
    """Return an application that makes an answer's body of a request's."""

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        body = message["body"]
        while message.get("more_body"):
            message = await receive()
            body += message["body"]
        body = answer(body)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


def _forks() -> ASGIApp:
    return application(OneModel(), Config(), {})


def _echo() -> ASGIApp:
    return _answering(lambda body: body)


class _Known(NamedTuple):
    """Features of users and videos, and examples to learn from."""

    users: dict[int, list[float]]
    videos: dict[int, list[float]]
    rows: Any
    labels: Any


def _known() -> _Known:
    chance = np.random.default_rng(0)
    users, videos = chance.normal(size=(2, ENTITIES, FEATURES)).tolist()
    rows = chance.normal(size=(1_000, 2 * FEATURES))
    labels = (rows[:, 0] + chance.normal(size=len(rows)) > 0).astype(int)
    return _Known(dict(enumerate(users)), dict(enumerate(videos)), rows, labels)


def _encoded(probabilities: Sequence[float]) -> bytes:
    items = [{"score": p, "predicted": p > 0.5, "probability": p} for p in probabilities]
    return msgspec.json.encode({"items": items})


def _river(model: Any) -> ASGIApp:
    known, decode = _known(), msgspec.json.Decoder(Request).decode
    for row, label in zip(known.rows.tolist(), known.labels.tolist(), strict=True):
        model.learn_one(dict(enumerate(row)), bool(label))

    def answer(body: bytes) -> bytes:
        request = decode(body)
        user = known.users[request.user_id]
        rows = (dict(enumerate(user + known.videos[item["video_id"]])) for item in request.items)
        return _encoded([model.predict_proba_one(row)[True] for row in rows])

    return _answering(answer)


def _river_linear() -> ASGIApp:
    return _river(linear_model.LogisticRegression())


def _river_kernel() -> ASGIApp:
    return _river(
        feature_extraction.RBFSampler(n_components=COMPONENTS, seed=0) | linear_model.LogisticRegression()
    )


def _scikit(*, at_once: bool) -> ASGIApp:
    known, decode = _known(), msgspec.json.Decoder(Request).decode
    sampler = RBFSampler(gamma=0.1, n_components=COMPONENTS, random_state=0).fit(known.rows)
    model = SGDClassifier(loss="log_loss", random_state=0).fit(sampler.transform(known.rows), known.labels)

    def answer(body: bytes) -> bytes:
        request = decode(body)
        user = known.users[request.user_id]
        rows = np.array([user + known.videos[item["video_id"]] for item in request.items])
        parts = [rows] if at_once else [row[np.newaxis] for row in rows]
        return _encoded(
            [p for part in parts for p in model.predict_proba(sampler.transform(part))[:, 1].tolist()]
        )

    return _answering(answer)


def _scikit_one() -> ASGIApp:
    return _scikit(at_once=False)


def _scikit_all() -> ASGIApp:
    return _scikit(at_once=True)


SERVERS: Final[Mapping[str, Callable[[], ASGIApp]]] = MappingProxyType(
    {
        "forks": _forks,
        "echo": _echo,
        "river_linear": _river_linear,
        "river_kernel": _river_kernel,
        "scikit_kernel": _scikit_one,
        "scikit_kernel_at_once": _scikit_all,
    }
)
"""What makes each server's application. A kernel is approximated by `COMPONENTS` random features.
scikit-learn scores one candidate after the other, as River does, or all at once."""


def _serve(name: str, port: int) -> None:
    limits = server_limits(Config().serve)
    with listening(f"127.0.0.1:{port}", "bench") as listener, serve(SERVERS[name](), listener, limits):
        threading.Event().wait()


@contextmanager
def _served() -> Iterator[dict[str, int]]:
    """Run all servers inside the block, at these ports."""
    ports = dict(zip(SERVERS, free_ports(len(SERVERS)), strict=True))
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_serve, args=each, daemon=True) for each in ports.items()]
    for process in processes:
        process.start()
    try:
        yield ports
    finally:
        for process in processes:
            process.kill()
            process.join()


def _latencies(port: int, requests: int) -> list[float]:
    """Return the milliseconds of each of so many requests over one connection."""
    chance, found = np.random.default_rng(port), []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60.0)
    for _ in range(requests):
        videos = chance.integers(0, ENTITIES, CANDIDATES).tolist()
        items = [{"video_id": each} for each in videos]
        body = msgspec.json.encode({"user_id": int(chance.integers(ENTITIES)), "items": items})
        begin = time.perf_counter()
        connection.request("POST", "/v1/score", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        found.append(1e3 * (time.perf_counter() - begin))
        if answer.status != http.HTTPStatus.OK:
            raise RuntimeError(f"status {answer.status}")
    connection.close()
    return found


def _wait(port: int) -> None:
    end = time.monotonic() + 300.0
    while time.monotonic() < end:
        with suppress(OSError):
            _latencies(port, 100)  # compiles
            return
        time.sleep(0.2)
    raise RuntimeError("a server does not start")


def run(options: Options) -> dict[str, Any]:
    """Return p50 and p99 of each server in milliseconds, ratios to the echo, and candidates a second."""
    runs = options.runs or RUNS
    found: dict[str, list[float]] = {name: [] for name in SERVERS}
    with _served() as ports:
        for name, port in ports.items():
            options.say(f"starting {name}")
            _wait(port)
        for number in range(runs):
            options.say(f"run {number + 1} of {runs}")
            for name, port in ports.items():
                found[name] += _latencies(port, REQUESTS if name in {"forks", "echo"} else REQUESTS // 10)
    p50, p99 = ({n: float(np.percentile(each, q)) for n, each in found.items()} for q in (50, 99))
    rate = {name: 1e3 * CANDIDATES / float(np.mean(each)) for name, each in found.items()}
    return {
        "candidates": CANDIDATES,
        "p50_ms": {name: round(each, 3) for name, each in p50.items()},
        "p99_ms": {name: round(each, 3) for name, each in p99.items()},
        "p50_ratio_to_echo": round(p50["forks"] / p50["echo"], 2),
        "p99_ratio_to_echo": round(p99["forks"] / p99["echo"], 2),
        "candidates_per_s": {name: round(each) for name, each in rate.items() if name != "echo"},
        "times_as_many": {
            name: round(rate["forks"] / each, 1)
            for name, each in rate.items()
            if name not in {"forks", "echo"}
        },
    }
