"""A small HTTP server that answers what this project asks of a schema registry, and fails as it is told to.

`tests/support/apicurio.py` runs a real one. This one is for what a real one cannot be made to do: answers of
any status, no answer, and Protobuf's descriptors.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlparse

from pipeline.config.settings import Registry
from pipeline.kafka.registry import _registry


class FakeRegistry:
    """Schemas by id, and by subject and version.

    Attributes
    ----------
    requests
        The paths that were asked for.
    status
        The status of every answer, with a text that is no JSON; None to answer.
    refusal
        Status and text of the answer to whoever registers a schema; None to register it.
    delay
        Seconds before each answer.
    """

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.status: int | None = None
        self.refusal: tuple[int, str] | None = None
        self.delay = 0.0
        self._schemas: dict[int, dict[str, Any]] = {}
        self._subjects: dict[tuple[str, int], int] = {}
        self._registered: list[tuple[str, int]] = []
        """Subjects and the ids that were registered under them, in this order."""

    def add(
        self,
        text: Any,
        kind: str = "AVRO",
        *,
        serialized: str | None = None,
        references: list[dict[str, Any]] | None = None,
        subject: str = "",
    ) -> int:
        """Register a schema, and return its id."""
        number = len(self._schemas) + 1
        self._schemas[number] = {
            "schema": text if isinstance(text, str) else json.dumps(text),
            "schemaType": kind,
            "references": references or [],
            "serialized": serialized,
        }
        if subject:
            self._subjects[subject, 1] = number
            self._registered.append((subject, number))
        return number

    def register(self, path: str, content: dict[str, Any]) -> tuple[int, dict[str, Any] | str]:
        """Register a schema under the subject of a path, and return status and content of the answer."""
        if self.status is not None:
            return self.status, "no JSON"
        if self.refusal is not None:
            status, message = self.refusal
            return status, {"error_code": status, "message": message}
        [_, subject, _] = urlparse(path).path.strip("/").split("/")
        kind = content.get("schemaType", "AVRO")
        number = next(
            (
                number
                for number, found in self._schemas.items()
                if (found["schema"], found["schemaType"]) == (content["schema"], kind)
            ),
            None,
        ) or self.add(content["schema"], kind)
        if (subject, number) not in self._registered:
            self._registered.append((subject, number))
        return 200, {"id": number}

    def latest(self, subject: str) -> int:
        """Return the id of the latest schema of a subject, 0 if it has none."""
        return next((number for name, number in reversed(self._registered) if name == subject), 0)

    def settings(self, **settings: Any) -> Registry:
        """Return the settings of a client."""
        return Registry.model_validate({"url": self.url} | settings)

    def answer(self, path: str) -> tuple[int, dict[str, Any] | str]:
        """Return status and content of an answer."""
        if self.status is not None:
            return self.status, "no JSON"
        parsed = urlparse(path)
        parts, query = parsed.path.strip("/").split("/"), parse_qs(parsed.query)
        match parts:
            case ["schemas", "ids", number]:
                found, more, code = self._schemas.get(int(number)), {}, 40403
            case ["subjects", subject, "versions", "latest"]:
                registered = self.latest(subject)
                found, code = self._schemas.get(registered), 40401
                more = {"subject": subject, "version": 1, "id": registered}
            case ["subjects", subject, "versions", version]:
                registered = self._subjects.get((subject, int(version)), 0)
                found, code = self._schemas.get(registered), 40401
                more = {"subject": subject, "version": int(version), "id": registered}
            case _:
                return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}
        if found is None:
            return 404, {"error_code": code, "message": "not found"}
        content = {name: value for name, value in found.items() if name != "serialized"}
        if query.get("format") == ["serialized"] and found["serialized"] is not None:
            content["schema"] = found["serialized"]
        return 200, content | more


@contextmanager
def fake_registry(port: int = 0) -> Iterator[FakeRegistry]:
    """Serve a registry inside the block."""
    _registry.cache_clear()  # a registry that is gone may have had this port
    registry = FakeRegistry()
    with serving(registry, port):
        yield registry


@contextmanager
def serving(registry: FakeRegistry, port: int = 0) -> Iterator[None]:
    """Serve this registry inside the block, which may be another time at the same port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.requests.append(self.path)
            registry.headers.append(dict(self.headers))
            time.sleep(registry.delay)
            self._answer(*registry.answer(self.path))

        def do_POST(self) -> None:
            registry.requests.append(self.path)
            time.sleep(registry.delay)
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(*registry.register(self.path, json.loads(body)))

        def _answer(self, status: int, content: dict[str, Any] | str) -> None:
            body = (content if isinstance(content, str) else json.dumps(content)).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except ConnectionError:  # who asked did not wait
                pass

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
