"""Streams whose candidates have features of messages."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Final

from pipeline.config.stream import Stream

DELIVERIES: Final = Stream.model_validate(
    tomllib.loads(files("pipeline.config").joinpath("streams/deliveries.toml").read_text("utf-8"))
)
"""Deliveries: numbers, booleans and hours, times as text."""
