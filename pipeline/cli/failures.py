"""The error message and the exit code with which a process ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pipeline.errors import BrokerError, ForksError

STOPPED: Final = 130
"""The exit code after Ctrl-C."""


@contextmanager
def report_failures(where: str = "") -> Iterator[None]:
    """Print errors that a user can act on as one line on standard error, and end the process.

    Parameters
    ----------
    where
        Which process failed, such as " in worker 1", for the message.
    """
    try:
        yield
    except ForksError as error:
        _fail(where, str(error), error.exit_code)
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    except Exception as error:
        from confluent_kafka import KafkaException

        from pipeline.kafka.access.errors import error_text

        if not isinstance(error, KafkaException):
            if not _logs_json():
                raise
            sys.excepthook(type(error), error, error.__traceback__)  # multiprocessing would write text
            sys.exit(ForksError.exit_code)
        _fail(where, f"Kafka: {error_text(error)}", BrokerError.exit_code)


def _fail(where: str, text: str, exit_code: int) -> None:
    if _logs_json():
        import structlog

        structlog.get_logger().error(f"error{where}: {text}", exit_code=exit_code)
        sys.exit(exit_code)
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(f"[red]error{where}:[/red] {escape(text)}")
    sys.exit(exit_code)


def _logs_json() -> bool:
    from pipeline.cli.logs import writes_json

    return "structlog" in sys.modules and writes_json()
