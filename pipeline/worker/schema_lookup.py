"""Ask for schemas in the background, so that a registry that is away stops nothing but what needs it."""

from __future__ import annotations

import time
from typing import Final

import structlog

from pipeline.errors import RegistryError
from pipeline.kafka.deadline import BackgroundCall
from pipeline.kafka.registry import SchemaRegistry
from pipeline.records.schemas import SchemaUnavailableError, WriterSchema

BURST: Final = 20
"""Questions that are asked at once, after a while without any."""
INTERVAL: Final = 0.1
"""Seconds between two questions after that, so that a flood of ids is no flood of questions."""
MAX_BACKOFF: Final = 10.0
"""Seconds between two questions while the registry is away, at most."""
PATIENCE: Final = 4.0
"""Timeouts of the registry after which a question is given up: what a schema refers to is asked for, too."""

_log = structlog.get_logger()


class SchemaLookup:
    """Knows the schemas that the registry has answered, and asks for one at a time.

    Parameters
    ----------
    registry
        The registry.

    Attributes
    ----------
    away
        Whether the last question had no answer.
    found, unknown, failed
        Numbers of answers, of those that there is no such schema, and of questions without an answer.
    """

    def __init__(self, registry: SchemaRegistry) -> None:
        self.away = False
        self.found = self.unknown = self.failed = 0
        self._registry = registry
        self._call: BackgroundCall[WriterSchema | None] | None = None
        self._schema_id = 0
        """The schema that is asked for."""
        self._deadline = 0.0
        self._backoff = 0.0
        self._next = 0.0
        """When a question may be asked again, after one that had no answer."""
        self._spent = 0.0
        """When all questions that were asked so far would have been asked, with `INTERVAL` between them."""
        self._away_since = 0.0

    def get(self, schema_id: int) -> WriterSchema:
        """Return a schema that is known; else ask for it, as soon as that may be.

        Raises
        ------
        UnknownSchemaError
            The registry does not have it.
        SchemaUnavailableError
            The registry has not answered yet.
        """
        self._collect()
        found = self._registry.kept(schema_id)
        if found is not None:
            return found
        self._ask(schema_id)
        raise SchemaUnavailableError(schema_id)

    def _ask(self, schema_id: int) -> None:
        now = time.monotonic()
        if self._call is not None or now < self._next or self._spent > now + (BURST - 1) * INTERVAL:
            return
        self._spent = max(self._spent, now) + INTERVAL
        self._schema_id = schema_id
        self._deadline = now + PATIENCE * self._registry.timeout
        self._call = BackgroundCall(lambda: self._registry.fetch(schema_id))

    def _collect(self) -> None:
        """Take the answer, if it has come."""
        call, now = self._call, time.monotonic()
        if call is None or not (call.done or now >= self._deadline):
            return
        self._call = None
        if not call.done:
            seconds = PATIENCE * self._registry.timeout
            self._note_failure(f"{self._registry.url} has not answered within {seconds:g} s", now)
            return
        try:
            answer = self._registry.keep(self._schema_id, call.result(0.0))
        except RegistryError as error:
            self._note_failure(str(error), now)
            return
        self.found += answer is not None
        self.unknown += answer is None
        if self.away:
            after = round(now - self._away_since, 1)
            _log.info("the schema registry answers again", url=self._registry.url, after_s=after)
        self.away, self._backoff, self._next = False, 0.0, 0.0

    def _note_failure(self, reason: str, now: float) -> None:
        self.failed += 1
        if not self.away:
            self.away, self._away_since = True, now
            _log.warning(
                "partitions with messages of a schema that is not known yet wait for the schema registry",
                schema=self._schema_id,
                reason=reason,
            )
        self._backoff = min(max(2 * self._backoff, 0.5), MAX_BACKOFF)
        self._next = now + self._backoff
