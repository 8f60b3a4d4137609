"""The tables of a stream: compacted topics whose newest record of an entity gives features of its events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from pipeline.config.pointer import Pointer
from pipeline.config.section import Section
from pipeline.config.stream_features import FieldFeature
from pipeline.config.stream_names import Name, TimeUnit, TopicName


class LiveTable(Section):
    """A compacted topic, read as a table: the newest record of a key is its row, and null deletes it."""

    topic: TopicName
    """The topic's name, without `kafka.input_prefix`."""
    entity: Name
    """The entity whose id is the key of a record."""
    id: Pointer | None = None
    """Where a record names the id itself, which then has to be that of its key; None if it does not."""
    time: Pointer | None = None
    """From when on a record holds; None for the time that Kafka has of it, as for records without a value."""
    time_unit: TimeUnit = "ms"
    """How the time is written."""
    features: dict[Name, Annotated[FieldFeature, Field(discriminator="kind")]] = Field(min_length=1)
    """Fields of its records that are features of the entity's events, by name."""
    max_rows: int = Field(1_000_000, ge=1, le=100_000_000)
    """Rows in each partition, at most: a record with another id is then refused."""

    def pointers(self) -> Iterator[tuple[str, str]]:
        """Yield the settings that are pointers, with their names."""
        if self.id is not None:
            yield "id", self.id
        if self.time is not None:
            yield "time", self.time
        for name, feature in self.features.items():
            yield f"features.{name}", feature.field
