"""The log of a long-running command, on standard error."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from typing import Any


def configure(*, json: bool = False, **fields: Any) -> None:
    """Log to standard error, as text for people or as JSON lines for machines.

    Parameters
    ----------
    json
        Write each log line as one JSON object, and so all that others would write to standard error: lines of
        the logging module, warnings, and exceptions that nobody catches.
    **fields
        Fields that every log line has.
    """
    import structlog

    shared: list[Any] = [
        lambda _logger, _method, event: event | fields,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    formatter = logging.Formatter("%(asctime)s [%(name)s] %(message)s")
    if json:
        shared.append(structlog.processors.format_exc_info)
        last: Any = structlog.processors.JSONRenderer()
        formatter = structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
        )
    else:
        last = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    structlog.configure(
        processors=[*shared, last],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        # One write for a line and its line feed: otherwise the lines of two workers in one log would mix.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=logging.ERROR, handlers=[handler], force=json)
    if json:
        _catch_what_is_not_logged()


def writes_json() -> bool:
    """Return whether this process logs as JSON."""
    import structlog

    return isinstance(structlog.get_config()["processors"][-1], structlog.processors.JSONRenderer)


def _catch_what_is_not_logged() -> None:
    """Log warnings, and exceptions that nobody catches; the interpreter would write them as text."""
    import structlog

    log = structlog.get_logger()

    def show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        log.warning(str(message), category=category.__name__)

    def show_unraisable(args: sys.UnraisableHookArgs) -> None:
        error = args.exc_value
        words = (args.err_msg, None if args.object is None else repr(args.object))
        log.error("exception ignored", exc_info=error, where=": ".join(filter(None, words)))

    def show_in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_type is not SystemExit:
            name = args.thread.name if args.thread else None
            log.error("uncaught exception", exc_info=args.exc_value, thread=name)

    warnings.showwarning = show_warning
    sys.excepthook = lambda _kind, error, _trace: log.error("uncaught exception", exc_info=error)
    sys.unraisablehook = show_unraisable
    threading.excepthook = show_in_thread
