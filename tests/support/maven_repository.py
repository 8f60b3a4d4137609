"""A Maven repository on this machine, for tests of what is downloaded from one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any


@dataclass
class MavenRepository:
    """A folder that an HTTP server on a free port serves.

    Attributes
    ----------
    folder : Path
        The files, by their paths in the repository.
    url : str
        The address of the repository, with a slash at its end.
    requests : list of str
        The paths that were asked for.
    failures : int
        How many of the next requests fail with the status 503.
    """

    folder: Path
    url: str = ""
    requests: list[str] = field(default_factory=list)
    failures: int = 0


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, repository: MavenRepository, *args: Any) -> None:
        self._repository = repository
        super().__init__(*args, directory=str(repository.folder))

    def do_GET(self) -> None:
        self._repository.requests.append(self.path.removeprefix("/"))
        if self._repository.failures:
            self._repository.failures -= 1
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE)
        else:
            super().do_GET()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serve(folder: Path, files: Mapping[str, bytes]) -> Iterator[MavenRepository]:
    """Write files into a folder, and serve it as a repository inside the block."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    repository = MavenRepository(folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, repository)) as server:
        repository.url = f"http://127.0.0.1:{server.server_port}/"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield repository
        finally:
            server.shutdown()
            thread.join()
