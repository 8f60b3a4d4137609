"""Ask a schema registry for schemas, and register schemas, with confluent-kafka's own client.

What a schema id stands for never changes, so schemas are kept for as long as there is room. That there is
none may change, and is asked again after a while. Any answer that is neither says nothing about the messages:
whoever asked has to wait.
"""

from __future__ import annotations

import json
import time
import weakref
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from pipeline.config.settings import Registry
from pipeline.config.topics import Topics
from pipeline.errors import ConfigError, RegistryError, SchemaRefusedError
from pipeline.extras import require
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.schemas import MAX_SCHEMA_SIZE, UnfitSchemaError, UnknownSchemaError, WriterSchema
from pipeline.truncate import truncate

TIMEOUT: Final = 5.0
"""Seconds that an answer of the registry may take."""
MAX_KEPT: Final = 500
"""Schemas that are kept, at most; those that were used last."""
MAX_KEPT_SIZE: Final = 32 * 2**20
"""Characters of the schemas that are kept, at most."""
MAX_REFERENCES: Final = 100
"""Schemas that a schema may refer to, at most, with those that these refer to."""
RECHECK: Final = 10.0
"""Seconds after which the registry is asked again for a schema that it did not have."""
SUBJECT_NOT_FOUND: Final = (40401, 40402)
"""The registry's own codes for a subject without a schema."""
REMEDIES: Final[Mapping[int, str]] = MappingProxyType(
    {
        401: "check the credentials in [registry.client]",
        403: "let the user of [registry.client] write this subject",
        409: "it is not compatible with those that the subject has: set the subject's compatibility to NONE, "
        "or take other topics, with another kafka.prefix",
        422: "see what it says of the schema",
    }
)
"""What to do where the registry refuses a schema, by the status of HTTP."""
SCHEMA_NOT_FOUND: Final = 40403
"""The registry's own code for an id that it does not have; any other 404 of HTTP means a wrong address."""
ATTEMPTS: Final = 3
"""How often commands ask, before they give up."""
PAUSE: Final = 1.0
"""Seconds between two attempts."""


Answer = TypeVar("Answer")


class Registered(NamedTuple):
    """A schema and its id."""

    schema_id: int
    schema: WriterSchema


class SchemaRegistry:
    """A schema registry, and what it has answered.

    Parameters
    ----------
    settings
        Where it is, and how it is spoken to.
    timeout
        Seconds that an answer may take.

    Raises
    ------
    ConfigError
        It cannot be spoken to with these settings, or the packages for it are not installed.
    """

    def __init__(self, settings: Registry, timeout: float = TIMEOUT) -> None:
        if settings.url is None:
            raise ConfigError('registry.url is not set: formats other than "json" need a registry')
        require("to read messages with schemas", "fastavro")
        self.url: Final = settings.url
        self.timeout: Final = timeout
        self._client = _client(settings, timeout)
        weakref.finalize(self, self._client.close)
        self._kept: OrderedDict[int, WriterSchema] = OrderedDict()
        self._kept_size = 0
        self._unknown: OrderedDict[int, float] = OrderedDict()
        """Schema ids that the registry does not have, with the time until which this is believed."""

    def kept(self, schema_id: int) -> WriterSchema | None:
        """Return a schema if it is known without asking.

        Raises
        ------
        UnknownSchemaError
            The registry did not have it a moment ago.
        """
        if self._unknown.get(schema_id, 0.0) > time.monotonic():
            raise UnknownSchemaError(schema_id)
        if schema_id in self._kept:
            self._kept.move_to_end(schema_id)
        return self._kept.get(schema_id)

    def get(self, schema_id: int) -> WriterSchema:
        """Return a schema, and ask for it if need be, some times if nothing answers.

        Raises
        ------
        UnknownSchemaError
            The registry does not have it.
        RegistryError
            The registry does not say.
        """
        found = self.kept(schema_id) or self.keep(schema_id, asked(lambda: self.fetch(schema_id)))
        if found is None:
            raise UnknownSchemaError(schema_id)
        return found

    def latest(self, subject: str) -> Registered | None:
        """Return the latest schema of a subject, None if it has none; asks some times if nothing answers.

        Raises
        ------
        RegistryError
            The registry does not say.
        """
        return asked(lambda: self._latest(subject))

    def _latest(self, subject: str) -> Registered | None:
        from confluent_kafka.schema_registry.error import SchemaRegistryError  # noqa: PLC0415 - of an extra

        try:
            self._client.clear_caches()
            version = self._client.get_latest_version(subject)
            return Registered(version.schema_id, _with_references(self._client, version.schema))
        except SchemaRegistryError as error:
            if error.http_status_code == 404 and error.error_code in SUBJECT_NOT_FOUND:
                return None
            raise self._unanswered(error) from None
        except MemoryError:
            raise
        except Exception as error:  # as in `fetch`
            raise self._unanswered(error) from None

    def register(self, subject: str, schema: WriterSchema) -> int:
        """Register a schema under a subject, unless it is there already, and return its id; asks once.

        Raises
        ------
        SchemaRefusedError
            The registry refuses it.
        RegistryError
            The registry does not say.
        """
        from confluent_kafka.schema_registry import Schema  # noqa: PLC0415 - of an extra
        from confluent_kafka.schema_registry.error import SchemaRegistryError  # noqa: PLC0415 - of an extra

        try:
            self._client.clear_caches()
            schema_id = int(self._client.register_schema(subject, Schema(schema.text, schema.kind)))
        except SchemaRegistryError as error:
            remedy = REMEDIES.get(error.http_status_code)
            if remedy is None:
                raise self._unanswered(error) from None
            raise SchemaRefusedError(
                f"the schema registry at {self.url} refuses the schema of {subject}: "
                f"HTTP {error.http_status_code}: {_text(error.error_message)}; {remedy}"
            ) from None
        except MemoryError:
            raise
        except Exception as error:  # as in `fetch`
            raise self._unanswered(error) from None
        self.keep(schema_id, schema)
        return schema_id

    def serializer(self, topic: str, schema: WriterSchema) -> Callable[[object], bytes]:
        """Return what writes a topic's messages in the latest schema of its subject, which is this one.

        It is Confluent's own serializer, which checks each message: whatever it raises is about that.
        """
        from confluent_kafka.schema_registry.avro import AvroSerializer  # noqa: PLC0415 - of an extra
        from confluent_kafka.serialization import MessageField, SerializationContext  # noqa: PLC0415 - as above

        settings = {"auto.register.schemas": False, "use.latest.version": True}
        context = SerializationContext(topic, MessageField.VALUE)
        if schema.kind == "AVRO":
            serialize: Any = AvroSerializer(self._client, schema.text, conf=settings)
        else:
            require("to write messages with JSON Schema", "jsonschema")
            from confluent_kafka.schema_registry.json_schema import JSONSerializer  # noqa: PLC0415 - as above

            serialize = JSONSerializer(schema.text, self._client, conf=settings)
        return lambda message: bytes(serialize(message, context))

    def keep(self, schema_id: int, answer: WriterSchema | None) -> WriterSchema | None:
        """Keep an answer of `fetch`, and return it."""
        if answer is None:
            self._unknown[schema_id] = time.monotonic() + RECHECK
            self._unknown.move_to_end(schema_id)
            if len(self._unknown) > MAX_KEPT:
                self._unknown.popitem(last=False)
            return None
        self._unknown.pop(schema_id, None)
        self._kept[schema_id] = answer
        self._kept_size += answer.size
        while len(self._kept) > MAX_KEPT or (self._kept_size > MAX_KEPT_SIZE and len(self._kept) > 1):
            self._kept_size -= self._kept.popitem(last=False)[1].size
        return answer

    def fetch(self, schema_id: int) -> WriterSchema | None:
        """Ask for a schema; None if the registry does not have it. May run in any thread.

        Raises
        ------
        RegistryError
            The registry does not say.
        """
        from confluent_kafka.schema_registry.error import SchemaRegistryError  # noqa: PLC0415 - of an extra

        try:
            # The client keeps all that it was ever told, without a limit.
            self._client.clear_caches()
            schema = self._client.get_schema(schema_id)
            if schema.schema_type == "PROTOBUF":
                self._client.clear_caches()
                schema = self._client.get_schema(schema_id, fmt="serialized")
                _refuse_text(schema.schema_str)
            return _with_references(self._client, schema)
        except SchemaRegistryError as error:
            if (error.http_status_code, error.error_code) == (404, SCHEMA_NOT_FOUND):
                return None
            raise self._unanswered(error) from None
        except UnfitSchemaError as error:
            return WriterSchema("", "", refusal=str(error))
        except MemoryError:
            raise
        except Exception as error:  # of the network, TLS, a token, or what is no answer of a registry
            raise self._unanswered(error) from None

    def _unanswered(self, error: Any) -> RegistryError:
        """Return the error of a question that has no answer, for whatever the client raised."""
        status = getattr(error, "http_status_code", None)
        reason = _text(error if status is None else error.error_message)
        kind = type(error).__name__ if status is None else f"HTTP {status}"
        return RegistryError(f"the schema registry at {self.url} does not answer: {kind}: {reason}")


def asked(ask: Callable[[], Answer]) -> Answer:
    """Ask some times, until there is an answer; a refusal is one."""
    for _ in range(ATTEMPTS - 1):
        try:
            return ask()
        except SchemaRefusedError:
            raise
        except RegistryError:
            time.sleep(PAUSE)
    return ask()


def _refuse_text(descriptor: str) -> None:
    """Raise an error if a registry gives the text of a Protobuf schema and not its descriptor."""
    try:
        b64decode(descriptor, validate=True)
    except ValueError:
        raise ValueError(
            "it gives no descriptors of Protobuf schemas, which are needed (format=serialized)"
        ) from None


def _text(error: object) -> str:
    return truncate(str(error)).replace("\n", " ")


def _with_references(client: Any, schema: Any) -> WriterSchema:
    """Return a schema with all that it refers to, each before those that refer to it."""
    found: dict[str, str] = {}
    begun: set[str] = set()
    serialized = {"fmt": "serialized"} if schema.schema_type == "PROTOBUF" else {}

    def collect(references: Any) -> None:
        for reference in references or ():
            if reference.name in begun:
                continue
            begun.add(reference.name)
            if len(begun) > MAX_REFERENCES:
                raise UnfitSchemaError(f"it refers to more than {MAX_REFERENCES} schemas")
            client.clear_caches()
            version = client.get_version(reference.subject, reference.version, deleted=True, **serialized)
            inner = version.schema
            collect(inner.references)
            found[reference.name] = inner.schema_str
            if sum(map(len, found.values())) > MAX_SCHEMA_SIZE:
                raise UnfitSchemaError(f"what it refers to has more than {MAX_SCHEMA_SIZE:,} characters")

    collect(schema.references)
    return WriterSchema(schema.schema_type or "AVRO", schema.schema_str or "", tuple(found.items()))


def _client(settings: Registry, timeout: float) -> Any:
    from confluent_kafka.schema_registry import SchemaRegistryClient  # noqa: PLC0415 - of an extra

    own = {name: value.get_secret_value() for name, value in settings.client.items()}
    try:
        return SchemaRegistryClient(own | {"url": settings.url, "timeout": timeout, "max.retries": 0})
    except (ValueError, TypeError, OSError) as error:
        reason = str(error) if not isinstance(error, OSError) else f"a file cannot be read: {error.strerror}"
    raise ConfigError(f"[registry.client]: the registry's client refuses these settings: {reason}")


def registry_of(settings: Registry) -> SchemaRegistry:
    """Return the registry with these settings; what it has answered is shared by all that ask it.

    Raises
    ------
    ConfigError
        It cannot be spoken to with these settings, or the packages for it are not installed.
    """
    client = {name: value.get_secret_value() for name, value in settings.client.items()}
    return _registry(settings.url, json.dumps(client, sort_keys=True))


@lru_cache(maxsize=8)
def _registry(url: str | None, client: str) -> SchemaRegistry:
    return SchemaRegistry(Registry(url=url, client=json.loads(client)))


def decoders_of(topics: Topics) -> InputDecoders:
    """Return the decoders of a pipeline's inputs, for commands: they wait until the registry answers.

    Raises
    ------
    ConfigError
        An input needs a registry, and there is none; later, when messages are decoded, `RegistryError`.
    """
    stream = topics.stream
    return InputDecoders.of(stream, registry_of(topics.registry) if stream.needs_registry else None)
