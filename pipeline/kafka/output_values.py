"""Values of the output topics whose records are not plain JSON: how they are written and read.

Inside this program all records of workers are JSON. Avro is made of it, and it of Avro, where messages are
produced and read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from pipeline.config.stream import Stream
from pipeline.config.topics import Topics
from pipeline.extras import require
from pipeline.kafka.registry import SchemaRegistry, registry_of
from pipeline.kafka.types import ConsumerRecord
from pipeline.records.avro_outputs import AvroRecord
from pipeline.records.decoding import UnusableValueError
from pipeline.records.framing import id_in
from pipeline.records.output_types import OutputTypes
from pipeline.records.schemas import PREFIX, SchemaSource, UnfitSchemaError

MAX_DECODERS: Final = 20
"""Schemas of a topic that are kept ready, at most."""

Encode: TypeAlias = Callable[[Sequence[bytes]], list[bytes]]
"""Returns what is produced of the JSON of records."""
Encoders: TypeAlias = Mapping[str, Encode]
"""By topic; none for topics with plain JSON."""


def subject_of(topic: str) -> str:
    """Return the subject of a topic's values in the registry: Confluent's TopicNameStrategy.

    Examples
    --------
    >>> subject_of("predictions")
    'predictions-value'
    """
    return f"{topic}-value"


def _records(topics: Topics) -> dict[str, AvroRecord]:
    """Return the Avro of each topic that has it."""
    if topics.stream.outputs.format == "json":
        return {}
    require("to write and read outputs in Avro", "fastavro")
    predictions, outcomes, requests = _records_of(topics.stream.model_dump_json())
    found = {topics.predictions: predictions, topics.outcomes: outcomes}
    return found | ({topics.label_requests: requests} if topics.requests_labels else {})


@lru_cache(maxsize=8)
def _records_of(definition: str) -> tuple[AvroRecord, AvroRecord, AvroRecord]:
    stream = Stream.model_validate_json(definition)
    types, namespace = OutputTypes.of(stream), f"forks.{stream.name}"
    prediction = types.prediction if types.slates is None else types.slates.record
    kinds: tuple[type[msgspec.Struct], ...] = prediction, types.outcome, types.label_request
    predictions, outcomes, requests = (AvroRecord(kind, namespace) for kind in kinds)
    return predictions, outcomes, requests


def register_outputs(topics: Topics, registry: SchemaRegistry) -> Encoders:
    """Register the schemas of the outputs, and return what encodes their records.

    Raises
    ------
    SchemaRefusedError
        The registry refuses a schema.
    RegistryError
        The registry does not answer.
    """
    return {
        topic: _encoder(record, registry.register(subject_of(topic), record.schema))
        for topic, record in _records(topics).items()
    }


def _encoder(record: AvroRecord, schema_id: int) -> Encode:
    prefix, encode = b"\0" + schema_id.to_bytes(4), record.encode
    return lambda texts: [prefix + encode(text) for text in texts]


class OutputValues:
    """Makes JSON of the values in the output topics.

    Parameters
    ----------
    topics
        The topics.
    schemas
        Knows the schemas of values that are not plain JSON; by default the registry is asked, and waited for.
    """

    def __init__(self, topics: Topics, schemas: SchemaSource | None = None) -> None:
        records = _records(topics)
        source = registry_of(topics.registry) if records and schemas is None else schemas
        self._topics = {
            topic: _Decoder(record, source) for topic, record in records.items() if source is not None
        }

    def converted(self, topic: str, messages: list[Any]) -> list[Any]:
        """Return a topic's messages with JSON as their values."""
        decoder = self._topics.get(topic)
        return messages if decoder is None else [JsonMessage(message, decoder) for message in messages]

    def json(self, topic: str, value: bytes) -> bytes:
        """Return the JSON of a value; of plain JSON, the value itself.

        Raises
        ------
        UnusableValueError
            No record can be made of it.
        SchemaUnavailableError, RegistryError
            Its schema is not known yet, or the registry does not answer.
        """
        decoder = self._topics.get(topic)
        return value if decoder is None else decoder(value)


PLAIN: Final = OutputValues(Topics())
"""Leaves all messages as they are."""


class _Decoder:
    """Decodes the values of one topic."""

    def __init__(self, record: AvroRecord, schemas: SchemaSource) -> None:
        self._record = record
        self._schemas = schemas
        self._ready: OrderedDict[bytes, Callable[[bytes], bytes]] = OrderedDict()

    def __call__(self, value: bytes) -> bytes:
        """Return the JSON of a value.

        Raises
        ------
        UnusableValueError
            No record can be made of it.
        SchemaUnavailableError, RegistryError
            Its schema is not known yet, or the registry does not answer.
        """
        prefix = value[:PREFIX]
        decode = self._ready.get(prefix)
        if decode is None:
            schema_id = id_in(prefix)
            schema = self._schemas.get(schema_id)
            if schema.refusal is not None or schema.kind != "AVRO":
                reason = schema.refusal or f"it is of {schema.kind}, not of AVRO"
                raise UnusableValueError(f"schema {schema_id}: {reason}")
            try:
                decode = self._ready[prefix] = self._record.decoder(schema)
            except UnfitSchemaError as error:
                raise UnusableValueError(f"schema {schema_id}: {error}") from None
            if len(self._ready) > MAX_DECODERS:
                self._ready.popitem(last=False)
        return decode(value)


class JsonMessage:
    """A message whose value is JSON that is made when it is asked for.

    A value of which no JSON can be made stays as it is: whoever decodes it then finds that it is none. One
    that is plain JSON is no value of this topic; it counts as empty, so that nobody takes it for one.
    """

    __slots__ = ("_decode", "_message", "_value", "fault")

    def __init__(self, message: ConsumerRecord, decode: Callable[[bytes], bytes]) -> None:
        self._message = message
        self._decode: Callable[[bytes], bytes] | None = decode
        self._value: bytes | None = None
        self.fault: str | None = None
        """Why no JSON can be made of the value; known once it was asked for."""

    def value(self) -> bytes | None:
        if self._decode is not None:
            self._value = self._message.value()
            try:
                self._value = self._decode(self._value or b"")
            except UnusableValueError as error:
                self.fault = str(error)
                if self._value is not None and self._value[:1] != b"\0":
                    self._value = b""
            self._decode = None
        return self._value

    def topic(self) -> str | None:
        return self._message.topic()

    def partition(self) -> int | None:
        return self._message.partition()

    def offset(self) -> int | None:
        return self._message.offset()

    def key(self) -> bytes | None:
        return self._message.key()

    def headers(self) -> Any:
        return self._message.headers()

    def timestamp(self) -> tuple[int, int]:
        return self._message.timestamp()
