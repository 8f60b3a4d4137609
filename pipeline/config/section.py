"""What the sections of the configuration have in common: their rules, and types of their settings."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

TimeUnit: TypeAlias = Literal["ms", "us", "ns", "s", "iso8601", "text"]
"""How times are written: whole milliseconds, microseconds or nanoseconds since 1970, seconds since 1970 with
or without a fraction, or text in ISO 8601 or in another format."""

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
TopicName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,200}$")]


class Section(BaseModel):
    """A section of the configuration; unknown names are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, hide_input_in_errors=True)
