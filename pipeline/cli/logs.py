"""What a long-running command says on standard error."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog


def configure(*, json: bool = False, **fields: Any) -> None:
    """Log to standard error: for people, or as JSON lines for machines; every line has the fields."""
    shared: list[Any] = [
        lambda _logger, _method, line: line | fields,
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
        # A line at a time, end and all: of two workers at one log, the lines would run together.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr, format="%(asctime)s [%(name)s] %(message)s")
