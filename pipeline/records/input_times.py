"""Times in messages: their types by unit, and what makes milliseconds of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

import msgspec

from pipeline.config.section import TimeUnit
from pipeline.records.fields import Timestamp

_MAX_TIME: Final = 2**53
"""The largest timestamp, in milliseconds: see `pipeline.records.fields.Timestamp`."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
TIME_TYPES: Final[Mapping[TimeUnit, Any]] = {
    "ms": Timestamp,
    "us": Annotated[int, msgspec.Meta(ge=0, le=_MAX_TIME * 1000)],
    "s": Annotated[float, msgspec.Meta(ge=0, le=_MAX_TIME / 1000)],
    "iso8601": Annotated[datetime, msgspec.Meta(tz=True)],
}
"""Types of times in messages."""


def _of_datetime(time: datetime) -> int:
    milliseconds = (time - _EPOCH) // timedelta(milliseconds=1)
    if milliseconds < 0:
        raise msgspec.ValidationError(f"Expected a time from 1970 on, got {time.isoformat()}")
    return milliseconds


TO_MILLISECONDS: Final[Mapping[TimeUnit, Callable[[Any], int]]] = {
    "ms": int,
    "us": lambda time: time // 1000,
    "s": lambda time: round(time * 1000),
    "iso8601": _of_datetime,
}
"""Functions from times in messages to milliseconds."""
