"""The log of a long-running command, on standard error."""

from __future__ import annotations

import logging
import sys
from typing import Any


def configure(*, json: bool = False, **fields: Any) -> None:
    """Log to standard error, as text for people or as JSON lines for machines.

    Parameters
    ----------
    json
        Write each log line as one JSON object.
    **fields
        Fields that every log line has.
    """
    import structlog

    shared: list[Any] = [
        lambda _logger, _method, event: event | fields,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: Any = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[*shared, last],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        # One write for a line and its line feed: otherwise the lines of two workers in one log would mix.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr, format="%(asctime)s [%(name)s] %(message)s")


def writes_json() -> bool:
    """Return whether this process logs as JSON."""
    import structlog

    return isinstance(structlog.get_config()["processors"][-1], structlog.processors.JSONRenderer)
