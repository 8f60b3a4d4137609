"""Types of settings that several parts of a stream's definition have in common."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

TimeUnit: TypeAlias = Literal["ms", "us", "s", "iso8601"]
"""How times are written: whole milliseconds or microseconds since 1970, seconds since 1970 with or without a
fraction, or text as in RFC 3339."""

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
TopicName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,200}$")]
