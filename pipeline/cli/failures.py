"""What a user is told when something goes wrong, and with which exit code a process then ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaException
from rich.console import Console
from rich.markup import escape

from pipeline.errors import BrokerError, ForksError
from pipeline.kafka.clients import error_text


@contextmanager
def report_failures(where: str = "") -> Iterator[None]:
    """Tell errors that a user can act on in one line on standard error, and end the process.

    Parameters
    ----------
    where
        What the line says of the place, such as " in worker 1".
    """
    try:
        yield
    except ForksError as error:
        _fail(where, str(error), error.exit_code)
    except KafkaException as error:
        _fail(where, f"Kafka: {error_text(error)}", BrokerError.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)


def _fail(where: str, text: str, exit_code: int) -> None:
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(f"[red]error{where}:[/red] {escape(text)}")
    sys.exit(exit_code)
