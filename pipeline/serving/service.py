"""`forks serve`: a follower and its HTTP server, in one process."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue

import structlog

from pipeline.config.settings import Config
from pipeline.monitoring.http_server import listening, serve
from pipeline.serving.application import application, server_limits
from pipeline.serving.follower import Follower
from pipeline.serving.score_log import ScoreLog


class Service:
    """Follows the models of the workers, and answers requests for scores.

    Parameters
    ----------
    config
        The whole configuration.
    log_scores
        The file to which answers are logged; None for nowhere.

    Raises
    ------
    StorageError
        That file cannot be opened.
    """

    def __init__(self, config: Config, log_scores: Path | None) -> None:
        self._config = config
        self._follower = Follower(config)
        self._score_log = None if log_scores is None else ScoreLog(log_scores)
        versions = {
            name: version(name) for name in ("forks-stream", "numpy", "scipy", "numba", "confluent-kafka")
        }
        versions["python"] = platform.python_version()
        self._app = application(self._follower, config, versions, self._score_log)
        self._stop: SimpleQueue[None] = SimpleQueue()  # a signal handler may put, whatever it interrupts

    def run(self) -> None:
        """Answer requests until `stop`, then finish those that are under way.

        Raises
        ------
        ConfigError
            The address cannot be listened on.
        BrokerError, TopicError, AuthorizationError
            As of `Follower.start`.
        """
        log = structlog.get_logger()
        address = self._config.serve.address
        with ExitStack() as stack:
            listener = stack.enter_context(listening(address, "serve.address"))
            if self._score_log is not None:
                stack.callback(self._score_log.close)
            stack.enter_context(self._following())
            log.info("answering", address=address, partitions=self._follower.partitions)
            with serve(self._app, listener, server_limits(self._config.serve)):
                self._stop.get()
        log.info("stopped")

    def stop(self) -> None:
        """End, once all requests under way are answered. A signal handler or another thread may call it."""
        self._stop.put(None)

    @contextmanager
    def _following(self) -> Iterator[None]:
        self._follower.start()
        try:
            yield
        finally:
            self._follower.stop()
