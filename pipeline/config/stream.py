"""The definition of a stream: where in its messages the ids, times and labels are, and what a label means."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from itertools import combinations
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from pipeline.config.section import Section

MAX_DEPTH: Final = 8
"""Names in a pointer, at most."""
TimeUnit: TypeAlias = Literal["ms", "us", "s", "iso8601"]
"""How times are written: whole milliseconds or microseconds since 1970, seconds since 1970 with or without a
fraction, or text as in RFC 3339."""
ValueKind: TypeAlias = Literal["number", "boolean"]
"""What a label's value is; true counts as 1 and false as 0."""
Format: TypeAlias = Literal["json", "avro", "protobuf", "json-schema"]
"""How messages are written: plain JSON, or in the wire format of Confluent's serializers, with the id of a
schema in a registry."""


def parts_of(pointer: str) -> tuple[str, ...]:
    """Return the names in a JSON pointer (RFC 6901).

    Raises
    ------
    ValueError
        The text is no pointer to a field of an object.

    Examples
    --------
    >>> parts_of("/user/id"), parts_of("/a~1b")
    (('user', 'id'), ('a/b',))
    """
    parts = tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    if not pointer.startswith("/") or not all(parts) or re.search(r"~(?![01])", pointer):
        raise ValueError('a pointer names a field by its path, like "/user_id" or "/user/id"')
    if len(parts) > MAX_DEPTH:
        raise ValueError(f"a pointer has at most {MAX_DEPTH} names")
    return parts


def _checked(pointer: str) -> str:
    parts_of(pointer)
    return pointer


Pointer = Annotated[str, AfterValidator(_checked)]
"""A JSON pointer to a field of a message."""
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
TopicName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,200}$")]


RESERVED: Final = frozenset(
    {
        "event_id",
        "timestamp",
        "score",
        "probability",
        "predicted",
        "features",
        "model_version",
        "prediction_sequence",
        "label",
        "label_timestamp",
        "correct",
        "loss",
        "status",
        "sequence",
        "shared",
        "challengers",
        "asked",
    }
)
"""Fields of outputs, which ids and labels cannot be called."""


class InputDefinition(Section):
    """What the messages of an input have in common."""

    topic: TopicName
    """The topic's name, without `kafka.input_prefix`."""
    format: Format = "json"
    """How the messages are written."""
    event_id: Pointer
    """The event's id, text or a whole number. Interaction and label of an event have the same."""
    time: Pointer
    """When it happened."""
    time_unit: TimeUnit = "ms"
    """How the time is written."""
    numbers: dict[Name, Pointer] = Field(default_factory=dict)
    """Further numbers that have to be there, from 0 on."""

    def pointers(self) -> Iterator[tuple[str, str]]:
        """Yield the settings that are pointers, with their names."""
        yield "event_id", self.event_id
        yield "time", self.time
        for name, pointer in self.numbers.items():
            yield f"numbers.{name}", pointer


class LabelDefinition(InputDefinition):
    """Messages with labels."""

    value: Pointer
    """The label: a number from 0 on, or true or false."""
    value_kind: ValueKind = "number"
    """Whether it is a number or a boolean."""

    def pointers(self) -> Iterator[tuple[str, str]]:
        """Yield the settings that are pointers, with their names."""
        yield from super().pointers()
        yield "value", self.value


class TargetSettings(Section):
    """Which labels are positive, and what they say."""

    name: Name
    """What outcomes call a label's value."""
    above: float = Field(ge=0.0, le=1e9)
    """A label above this is positive."""
    cap: float = Field(gt=0.0, le=1e9)
    """Labels above this count as this, so that a single one cannot decide a mean."""
    scale: float = Field(gt=0.0, le=1e9)
    """How far from `above` a label is a clear case: its signal is 0.88 of what a label can say at most."""


class Stream(Section):
    """The definition of a stream."""

    name: Name
    entities: dict[Name, Pointer]
    """The two ids that interactions and labels name, first the one that is the messages' key."""
    interactions: InputDefinition
    labels: LabelDefinition
    target: TargetSettings

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.entities) != 2:
            raise ValueError(
                f"entities has {len(self.entities)} ids, and needs two: whose event it is, and of what"
            )
        for name in (*self.entities, self.target.name):
            if name in RESERVED:
                raise ValueError(f"{name} is the name of another field of outputs: take another name")
        if self.target.name in self.entities:
            raise ValueError(f"the label and an id are both called {self.target.name}")
        if self.interactions.topic == self.labels.topic:
            raise ValueError(f"interactions and labels have the same topic, {self.labels.topic}")
        for name, definition in (("interactions", self.interactions), ("labels", self.labels)):
            _refuse_overlap(name, dict(definition.pointers()) | _entity_pointers(self.entities))
        return self

    @property
    def needs_registry(self) -> bool:
        """Whether the schemas of an input are in a registry."""
        return not self.interactions.format == self.labels.format == "json"


def _entity_pointers(entities: Mapping[str, str]) -> dict[str, str]:
    return {f"entities.{name}": pointer for name, pointer in entities.items()}


def _refuse_overlap(message: str, pointers: Mapping[str, str]) -> None:
    """Refuse pointers to the same field, and to a field within another."""
    for (name, one), (other_name, other) in combinations(pointers.items(), 2):
        if one == other:
            raise ValueError(f"{message}: {name} and {other_name} are both {one}")
        shorter, longer = sorted((parts_of(one), parts_of(other)), key=len)
        if longer[: len(shorter)] == shorter:
            raise ValueError(
                f"{message}: {name} is {one} and {other_name} is {other}: one is within the other"
            )


KUAIREC: Final = Stream.model_validate(
    tomllib.loads(files("pipeline.config").joinpath("streams/kuairec.toml").read_text("utf-8"))
)
"""KuaiRec's stream, which is the default."""
