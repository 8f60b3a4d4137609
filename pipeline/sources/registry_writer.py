"""Make messages with schemas of a registry, with Confluent's own serializers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import structlog

from pipeline.config.stream import InputDefinition, Stream
from pipeline.errors import ConfigError, DataError
from pipeline.kafka.output_values import subject_of
from pipeline.kafka.registry import Registered, SchemaRegistry, asked
from pipeline.records import avro
from pipeline.records.derived_schemas import derived_schema
from pipeline.records.input_decoders import wanted_fields
from pipeline.records.schemas import UnfitSchemaError
from pipeline.sources.messages import StreamWriter
from pipeline.truncate import truncate

KINDS: Final = {"avro": "AVRO", "json-schema": "JSON"}
"""What registries call the formats that can be written."""

_log = structlog.get_logger()


class RegistryWriter:
    """What makes the messages of a stream whose inputs have schemas: see `pipeline.sources.messages`.

    A topic's schema is the latest of its subject, ``TOPIC-value``. If there is none, one is derived from the
    definition, and registered.

    Parameters
    ----------
    stream
        Definition of the stream.
    topics
        The topics of interactions and labels.
    registry
        Has the schemas.

    Raises
    ------
    ConfigError
        Messages of an input's format cannot be written, or the latest schema does not fit its definition.
    RegistryError
        The registry does not answer, or refuses a schema.
    """

    def __init__(self, stream: Stream, topics: tuple[str, str], registry: SchemaRegistry) -> None:
        self._registry = registry
        definitions = stream.interactions, stream.labels
        for name, definition in zip(("interactions", "labels"), definitions, strict=True):
            if definition.format not in {"json", *KINDS}:
                raise ConfigError(
                    f"{name}.format is {definition.format}: only messages in JSON, Avro and JSON Schema can "
                    "be sent"
                )
        inputs = [self._input(stream, *each) for each in zip(definitions, topics, strict=True)]
        (interactions, self._serialize_interaction), (labels, self._serialize_label) = inputs
        written = {"interactions": interactions, "labels": labels}
        self._writer = StreamWriter(stream.model_copy(update=written))
        self.key_column = self._writer.key_column
        self.columns: Sequence[str] = self._writer.columns
        if stream.is_kuairec:  # whose rows are those of its files
            self.key_column = "user_id"
            ids = dict(zip(("entity_0", "entity_1"), stream.entities, strict=True))
            self.columns = [ids.get(name, name.rpartition(".")[2]) for name in self._writer.columns]

    def interaction(self, row: Sequence[Any]) -> bytes:
        """Return the value of the interaction."""
        return self._serialize_interaction(self._writer.interaction(row))

    def label(self, row: Sequence[Any]) -> bytes:
        """Return the value of the label."""
        return self._serialize_label(self._writer.label(row))

    def _input(
        self, stream: Stream, definition: InputDefinition, topic: str
    ) -> tuple[InputDefinition, Callable[[bytes], bytes]]:
        """Return the definition of an input in JSON, and what makes its messages of that JSON."""
        if definition.format == "json":
            return definition, bytes
        subject = subject_of(topic)
        registered = self._registered(stream, definition, subject)
        name = f"schema {registered.schema_id}, the latest of {subject},"
        if registered.schema.kind != KINDS[definition.format]:
            raise ConfigError(
                f"{name} is of {registered.schema.kind}, and the input's format is {definition.format}"
            )
        unit = None
        if definition.format == "avro":
            try:
                unit = avro.parsed_by(registered.schema, wanted_fields(stream, definition)).time_unit
            except UnfitSchemaError as error:
                raise ConfigError(f"{name} does not fit the stream's definition: {error}") from None
        serialize = self._registry.serializer(topic, registered.schema)

        def framed(text: bytes) -> bytes:
            message = msgspec.json.decode(text)
            try:
                return serialize(message)
            except MemoryError:
                raise
            except Exception as error:  # whatever the serializers raise for what does not fit
                reason = truncate(str(error) or type(error).__name__).replace("\n", " ")
                raise DataError(
                    f"{name} does not take the message {truncate(text.decode())}: {reason}"
                ) from None

        plain = definition if unit is None else definition.with_time_unit(unit)
        return plain.model_copy(update={"format": "json"}), framed

    def _registered(self, stream: Stream, definition: InputDefinition, subject: str) -> Registered:
        found = self._registry.latest(subject)
        if found is not None:
            _log.info("messages are of the latest schema", subject=subject, schema=found.schema_id)
            return found
        try:
            schema = derived_schema(stream, definition)
        except UnfitSchemaError as error:
            raise ConfigError(f"{subject} has no schema, and none can be derived: {error}") from None
        schema_id = asked(lambda: self._registry.register(subject, schema))
        _log.info(
            "there is no schema: one was derived from the definition and registered",
            subject=subject,
            schema=schema_id,
        )
        return Registered(schema_id, schema)
