"""Ask a worker for its status."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException
from typing import Final, TypeVar

import msgspec

from pipeline.config.settings import host_and_port
from pipeline.errors import ConfigError, ForksError
from pipeline.monitoring.status import HistoryStatus, Status

TIMEOUT: Final = 5.0
"""Seconds for an answer."""
MAX_BYTES: Final = 32_000_000
"""Bytes of an answer, at most: thousands of partitions have less."""

Answer = TypeVar("Answer")


class NoAnswerError(ForksError):
    """Nothing answers at an address, or something that is no worker."""


class WorkerAddress:
    """Where a worker answers.

    Parameters
    ----------
    address
        ``host:port``, ``[host]:port`` or a port of this machine.

    Raises
    ------
    ConfigError
        The text is no address.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        try:
            self._host, self._port = host_and_port(address)
        except ValueError as error:
            raise ConfigError(f"{address}: {error}") from None

    def status(self) -> tuple[bytes, Status]:
        """Return the status as it was sent and decoded.

        Raises
        ------
        NoAnswerError
            No worker answers.
        """
        return self._ask("/v1/status", Status)

    def history(self) -> HistoryStatus:
        """Return the last hour.

        Raises
        ------
        NoAnswerError
            No worker answers.
        """
        return self._ask("/v1/history", HistoryStatus)[1]

    def _ask(self, path: str, kind: type[Answer]) -> tuple[bytes, Answer]:
        connection = HTTPConnection(self._host, self._port, timeout=TIMEOUT)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read(MAX_BYTES)
        except OSError as error:
            reason = error.strerror or str(error) or type(error).__name__
            raise NoAnswerError(
                f"no worker answers at {self.address}: {reason}. A worker answers where its setting "
                'metrics.address says: start one with FORKS_METRICS__ADDRESS="127.0.0.1:9100", and name '
                "that address to forks top"
            ) from error
        except HTTPException as error:
            raise self._no_worker(type(error).__name__) from error
        finally:
            connection.close()
        if answer.status != 200:
            raise self._no_worker(f"HTTP {answer.status}")
        try:
            return body, msgspec.json.decode(body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._no_worker(str(error)) from error

    def _no_worker(self, reason: str) -> NoAnswerError:
        return NoAnswerError(
            f"what answers at {self.address} is no worker of this version ({reason}): name the "
            "metrics.address of one"
        )
