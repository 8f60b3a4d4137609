"""Register the schemas of the outputs, when a worker starts."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Final

import structlog

from pipeline.config.topics import Topics
from pipeline.errors import RegistryError, SchemaRefusedError
from pipeline.kafka.deadline import BackgroundCall
from pipeline.kafka.output_values import Encoders, register_outputs
from pipeline.kafka.registry import registry_of

FIRST_PAUSE: Final = 0.5
"""Seconds between the first two attempts."""
MAX_PAUSE: Final = 10.0
"""Seconds between two attempts, at most."""
STOP_CHECK: Final = 0.02
"""Seconds after which a worker that waits for an answer looks whether to stop."""

_log = structlog.get_logger()


def registered_outputs(topics: Topics, stopping: threading.Event) -> Encoders:
    """Register the schemas of outputs that are not plain JSON, and wait while the registry is away.

    Parameters
    ----------
    topics
        The topics.
    stopping
        Ends the wait; what is returned then is of no use.

    Returns
    -------
    Encoders
        What encodes the records.

    Raises
    ------
    SchemaRefusedError
        The registry refuses a schema.
    """
    if topics.stream.outputs.format == "json":
        return {}
    registry, pause, begin = registry_of(topics.registry), FIRST_PAUSE, time.monotonic()
    while not stopping.is_set():
        call = BackgroundCall(partial(register_outputs, topics, registry))
        while not (call.done or stopping.is_set()):
            stopping.wait(STOP_CHECK)
        if not call.done:
            break
        try:
            encoders = call.result(0.0)
        except SchemaRefusedError:
            raise
        except RegistryError as error:
            if pause == FIRST_PAUSE:
                _log.warning("the worker waits for the schema registry to start", reason=str(error))
            stopping.wait(pause)
            pause = min(2 * pause, MAX_PAUSE)
            continue
        seconds = round(time.monotonic() - begin, 1)
        _log.info("the schemas of the outputs are registered", url=registry.url, seconds=seconds)
        return encoders
    return {}
