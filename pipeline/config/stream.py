"""The definition of a stream: where in its messages the ids, times and labels are, and what a label means."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from itertools import combinations
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from pipeline.config.pointer import Pointer, parts_of
from pipeline.config.section import Name, Section, TopicName
from pipeline.config.section import TimeUnit as TimeUnit  # noqa: PLC0414 - exported
from pipeline.config.stream_features import (
    CategoryFeature,
    DerivedFeature,
    EventFeature,
    FieldFeature,
    IdFeature,
    LiveTable,
    NumberFeature,
    RunningTable,
    is_sparse,
)
from pipeline.config.target_settings import TargetSettings
from pipeline.config.times import TimeFormat, TimeSettings

MAX_ENTITIES: Final = 8
"""Entities of a stream, at most."""
MAX_TABLES: Final = 8
"""Tables of a stream, at most."""
MAX_ITEMS: Final = 1_000
"""The largest `interactions.max_items`."""
EVENT_ID: Final = "event_id"
"""What `Stream.key` is where the event's id is the messages' key."""

ValueKind: TypeAlias = Literal["number", "boolean", "signal"]
"""What a label's value is; true counts as 1 and false as 0, and a signal is text that counts as a number."""
Format: TypeAlias = Literal["json", "avro", "protobuf", "json-schema"]
"""How messages are written: plain JSON, or in the wire format of Confluent's serializers, with the id of a
schema in a registry."""

PAIRS: Final = "pairs"
"""What stands in `Stream.crosses` for all pairs."""
Cross = Annotated[tuple[str, ...], Field(min_length=2, max_length=3)] | Literal["pairs"]
SignalName = Annotated[str, Field(max_length=256)]
SignalValue = Annotated[float, Field(ge=-1e9, le=1e9)]
SignalWeight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
RESERVED: Final = frozenset(
    {
        *("event_id", "timestamp", "score", "probability", "predicted", "features", "model_version"),
        *("prediction_sequence", "label", "label_timestamp", "correct", "loss", "status"),
        *("sequence", "shared", "challengers", "asked", "former", "tables"),
    }
)
"""Fields of outputs, which ids, labels and tables cannot be called."""
WEIGHT: Final = "weight"
"""One more, where labels have weights."""
SLATE_FIELDS: Final = frozenset({"items", "position"})
"""Two more, where interactions are slates."""
CARRIED: Final = ("propensity", "target_propensity", "estimate", "target_estimate")
"""Numbers of interactions that predictions and outcomes carry as they are, where a definition points to them;
these are names of fields then. `forks report --off-policy` says what they mean."""


class OutputDefinition(Section):
    """How predictions, outcomes and label requests are written."""

    format: Literal["json", "avro"] = "json"
    """Plain JSON, or Avro in the wire format of Confluent's serializers."""


class InputDefinition(TimeSettings):
    """What the messages of an input have in common."""

    topic: TopicName
    """The topic's name, without `kafka.input_prefix`."""
    format: Format = "json"
    """How the messages are written."""
    event_id: Pointer
    """The event's id, text or a whole number. Interaction and label of an event have the same."""
    time: Pointer
    """When it happened."""
    time_of_day: Pointer | None = None
    """Where the time of the day is, if `time` has the day alone: an hour, or text like "13:05"."""
    numbers: dict[Name, Pointer] = Field(default_factory=dict)
    """Further numbers that have to be there, from 0 on."""

    @model_validator(mode="after")
    def _check_time_of_day(self) -> Self:
        if self.time_of_day is None:
            return self
        if self.utc_offset is None or (self.time_format and TimeFormat(self.time_format).has_time):
            raise ValueError(
                "time_of_day is where the time of the day is if time has the day alone: set utc_offset, too, "
                'and time_unit to "iso8601" or "text", with a time_format without an hour'
            )
        return self

    def with_time_unit(self, unit: TimeUnit) -> Self:
        """Return the definition of the same messages, but for their time, which is a number since 1970."""
        numbers = {"time_unit": unit, "time_format": None, "utc_offset": None, "time_of_day": None}
        return self.model_copy(update=numbers)

    def pointers(self) -> Iterator[tuple[str, str]]:
        """Yield the settings that are pointers, with their names."""
        yield "event_id", self.event_id
        yield "time", self.time
        if self.time_of_day is not None:
            yield "time_of_day", self.time_of_day
        for name, pointer in self.numbers.items():
            yield f"numbers.{name}", pointer


class InteractionDefinition(InputDefinition):
    """Messages with interactions: of one item, or of a slate, the items that were shown together."""

    items: Pointer | None = None
    """The list of a slate's items in the order in which they were shown; None where a message is one item."""
    item_fields: tuple[Name, ...] = ()
    """Entities, numbers, features and propensities and estimates that each item has: their pointers begin in
    the item. All others are of the message."""
    max_items: int = Field(100, ge=1, le=MAX_ITEMS)
    """Items of a slate, at most."""
    propensity: Pointer | None = None
    """The probability with which what is shown was chosen, above 0 and up to 1."""
    target_propensity: Pointer | None = None
    """The probability with which the target policy would have chosen it, from 0 to 1."""
    estimate: Pointer | None = None
    """What a model expected of the label of what is shown."""
    target_estimate: Pointer | None = None
    """What the same model expected of the label of what the target policy would show."""

    @model_validator(mode="after")
    def _check_items(self) -> Self:
        if self.items is None and self.item_fields:
            raise ValueError("item_fields are read in the items of a list: set items to where it is")
        if len(set(self.item_fields)) < len(self.item_fields):
            raise ValueError("item_fields name a field twice")
        return self

    @model_validator(mode="after")
    def _check_carried(self) -> Self:
        if self.target_propensity is not None and self.propensity is None:
            raise ValueError("target_propensity is compared with propensity: name both, or neither")
        if (self.estimate is None) != (self.target_estimate is None):
            raise ValueError("estimate and target_estimate are compared: name both, or neither")
        if self.estimate is not None and self.target_propensity is None:
            raise ValueError("estimate needs propensity and target_propensity: name them, too")
        return self

    @property
    def carried(self) -> dict[str, Pointer]:
        """What predictions and outcomes carry as it is, by name in the order of `CARRIED`."""
        pointers = {name: getattr(self, name) for name in CARRIED}
        return {name: pointer for name, pointer in pointers.items() if pointer is not None}

    def pointers(self) -> Iterator[tuple[str, str]]:
        """Yield the settings that are pointers, with their names."""
        yield from super().pointers()
        if self.items is not None:
            yield "items", self.items
        yield from self.carried.items()


class LabelDefinition(InputDefinition):
    """Messages with labels."""

    value: Pointer
    """The label: a number from 0 on, true or false, or a signal."""
    value_kind: ValueKind = "number"
    """Whether it is a number, a boolean or a signal."""
    signals: dict[SignalName, SignalValue] = Field(default_factory=dict, max_length=100)
    """What each signal counts as, by its text."""
    weight: Pointer | None = None
    """How many labels the label counts as when it is learned; None where each counts as one."""
    weights: dict[SignalName, SignalWeight] = Field(default_factory=dict, max_length=100)
    """The same by signal; a signal that is not named counts as one label."""

    @model_validator(mode="after")
    def _check_signals(self) -> Self:
        if (self.value_kind == "signal") != bool(self.signals):
            raise ValueError('signals say what each text of value counts as: with value_kind = "signal" only')
        if self.weights and not self.signals:
            raise ValueError('weights are those of signals: with value_kind = "signal" only')
        unknown = [name for name in self.weights if name not in self.signals]
        if unknown:
            raise ValueError(
                f"weights.{unknown[0]} is of no signal: there are {', '.join(sorted(self.signals))}"
            )
        if self.weights and self.weight is not None:
            raise ValueError("weight and weights both say how much a label counts: take one of them")
        return self

    @property
    def weighted(self) -> bool:
        """Whether labels have weights."""
        return self.weight is not None or bool(self.weights)

    def pointers(self) -> Iterator[tuple[str, str]]:
        """Yield the settings that are pointers, with their names."""
        yield from super().pointers()
        yield "value", self.value
        if self.weight is not None:
            yield "weight", self.weight


class Stream(Section):
    """The definition of a stream."""

    name: Name
    entities: dict[Name, Pointer] = Field(default_factory=dict, max_length=MAX_ENTITIES)
    """The ids that interactions and labels name, such as a user's and an item's."""
    key: Name | None = None
    """The entity whose id is the key of interactions and labels, or `event_id`; None for the first entity,
    and without entities for the event's id."""
    interactions: InteractionDefinition
    labels: LabelDefinition
    outputs: OutputDefinition = OutputDefinition()
    target: TargetSettings
    features: dict[Name, EventFeature] = Field(default_factory=dict)
    """Features that a message has by itself, by name."""
    crosses: Literal["pairs", "none"] | tuple[Cross, ...] = "pairs"
    """Which features the learner's sparse part crosses: all pairs of categories and numbers, none, or these,
    each two or three names, with `pairs` among them for all pairs too."""
    tables: dict[Name, LiveTable] = Field(default_factory=dict, max_length=MAX_TABLES)
    """Compacted topics that give features of entities, by name."""
    running: dict[Name, RunningTable] | None = None
    """Running statistics by name; None for those of each entity."""
    effects: tuple[Name, Name] | None = None
    """Two tables of `running` whose effects on the labels are adjusted for one another. None for none where
    `running` is given, and for the first two entities where it is not."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        reserved = RESERVED | ({WEIGHT} if self.labels.weighted else set())
        reserved |= SLATE_FIELDS if self.has_slates else set()
        reserved |= self.interactions.carried.keys()
        for name in (*self.entities, self.target.name, *self.tables):
            if name in reserved:
                raise ValueError(f"{name} is the name of another field of outputs: take another name")
        if self.target.name in self.entities:
            raise ValueError(f"the label and an id are both called {self.target.name}")
        if self.key is not None and self.key not in {*self.entities, EVENT_ID}:
            raise ValueError(f"the key is {self.key}, which is neither an entity nor {EVENT_ID}")
        self._check_names()
        self._check_running()
        self._check_tables()
        if self.interactions.topic == self.labels.topic:
            raise ValueError(f"interactions and labels have the same topic, {self.labels.topic}")
        self._check_slates()
        for name, definition in (("interactions", self.interactions), ("labels", self.labels)):
            for within, pointers in self._pointers_by_object(definition).items():
                _refuse_overlap(f"{name}{within}", pointers)
        return self

    @property
    def has_slates(self) -> bool:
        """Whether an interaction is a slate: a list of items that were shown together."""
        return self.interactions.items is not None

    @property
    def item_entities(self) -> tuple[int, ...]:
        """The numbers of the entities that each item of a slate names; empty without slates."""
        names = self.interactions.item_fields
        return tuple(number for number, name in enumerate(self.entities) if name in names)

    @property
    def needs_registry(self) -> bool:
        """Whether there are schemas in a registry, of inputs or of outputs."""
        return not self.interactions.format == self.labels.format == self.outputs.format == "json"

    @property
    def in_json(self) -> Stream:
        """The same definition, with all messages in plain JSON."""
        plain = {"format": "json"}
        parts = ("interactions", "labels", "outputs")
        return self.model_copy(update={name: getattr(self, name).model_copy(update=plain) for name in parts})

    @property
    def is_kuairec(self) -> bool:
        """Whether it is KuaiRec's stream, however its messages are written."""
        return self.in_json == KUAIREC

    def _check_names(self) -> None:
        """Refuse features with the name of an entity, and entities that outputs could not tell apart."""
        both = self.features.keys() & self.entities.keys()
        for name, feature in self.features.items():
            if isinstance(feature, IdFeature) and feature.entity not in self.entities:
                raise ValueError(
                    f"features.{name} is the id of {feature.entity}, which is no entity: there are "
                    f"{', '.join(self.entities) or 'none'}"
                )
        if both:
            raise ValueError(f"{min(both)} is the name of an entity and of a feature: take another name")
        words: dict[str, str] = {}
        for name in self.entities:
            other = words.setdefault(entity_word(name), name)
            if other != name:
                raise ValueError(
                    f"the entities {other} and {name} would both be called {entity_word(name)}: "
                    "take another name"
                )

    def _check_slates(self) -> None:
        """Refuse slates whose items cannot be told apart, or whose key is not of the message."""
        if not self.has_slates:
            return
        read = [*self.entities, *self.interactions.numbers, *self.interactions.carried]
        read += [name for name, each in self.features.items() if not isinstance(each, DerivedFeature)]
        for name in self.interactions.item_fields:
            if name not in read:
                raise ValueError(
                    f"interactions.item_fields name {name}, which is no entity, number, feature or "
                    "propensity that is read in interactions"
                )
            if read.count(name) > 1:
                raise ValueError(
                    f"interactions.item_fields name {name}, which has two meanings there: rename the number "
                    "or the feature"
                )
        if not self.item_entities:
            raise ValueError(
                "interactions.item_fields have to name the entity that tells the items of a slate apart"
            )
        if self.key_entity in self.item_entities:
            raise ValueError(
                f"the key is {[*self.entities][self.key_entity or 0]}, which each item of a slate has: set "
                "key to an entity of the message, or to event_id"
            )

    def _pointers_by_object(self, definition: InputDefinition) -> dict[str, dict[str, str]]:
        """Return what is read of a message, and of an item of it, each with the names of the settings."""
        found: dict[str, dict[str, str]] = {"": {}, ".items": {}}
        for name, pointer in self.pointers(definition):
            of_item = definition is self.interactions and self.is_item_field(name)
            found[".items" if of_item else ""][name] = pointer
        return found

    def is_item_field(self, setting: str) -> bool:
        """Whether the pointer of this name begins in an item, in the messages of interactions."""
        kind, _, name = setting.partition(".")
        name = name if kind in {"entities", "numbers", "features"} else kind
        return name in self.interactions.item_fields and (name != kind or name in CARRIED)

    def _check_tables(self) -> None:
        """Refuse tables of no entity, and topics and fields that have two meanings."""
        topics = {self.interactions.topic: "interactions", self.labels.topic: "labels"}
        for name, table in self.tables.items():
            if table.entity not in self.entities:
                raise ValueError(f"tables.{name} is of {table.entity}, which is no entity")
            other = topics.setdefault(table.topic, f"tables.{name}")
            if other != f"tables.{name}":
                raise ValueError(f"{other} and tables.{name} have the same topic, {table.topic}")
            _refuse_overlap(f"tables.{name}", dict(table.pointers()))

    def _check_running(self) -> None:
        crossed = {*self.entities} | {
            name
            for name, each in (*self.features.items(), *self.table_features())
            if isinstance(each, CategoryFeature | NumberFeature) or is_sparse(each)
        }
        for name, table in (self.running or {}).items():
            for part in table.of or (name,):
                if part not in crossed:
                    raise ValueError(
                        f"running.{name} is of {part}, which is no entity, category or number: there are "
                        f"{', '.join(sorted(crossed)) or 'none'}"
                    )
            if len(set(table.of or ())) != len(table.of or ()):
                raise ValueError(f"running.{name} is of {part} twice")
            self._check_features_of(name, table)
        for name in self.effects or ():
            adjusted = (self.running or {}).get(name)
            if adjusted is None:
                raise ValueError(f"effects name {name}, which is no table of running")
            if adjusted.features is not None and not {"effect", "noise"} <= {*adjusted.features}:
                raise ValueError(f"effects name {name}, whose features lack effect or noise")
        if self.effects is not None and len(set(self.effects)) < 2:
            raise ValueError("effects are of two different tables")

    def _check_features_of(self, name: str, table: RunningTable) -> None:
        """Refuse features that need what the table does not have."""
        if table.leans_on is not None and (
            table.leans_on == name or table.leans_on not in (self.running or {})
        ):
            raise ValueError(f"running.{name} leans on {table.leans_on}, which is no other table of running")
        needs = {
            "leaning_label_mean": ("leans_on", table.leans_on is not None),
            "leaning_value_mean": ("leans_on", table.leans_on is not None),
            "recent_label_mean": ("half_life", table.half_life is not None),
            "recent_value_mean": ("half_life", table.half_life is not None),
            "log_recent_count": ("half_life", table.half_life is not None),
            "recent_residual": (
                "half_life, and the stream effects",
                table.half_life is not None and self.effects is not None,
            ),
            "effect": ("to be one of effects", name in (self.effects or ())),
            "noise": ("to be one of effects", name in (self.effects or ())),
        }
        for feature in table.features or ():
            needed, there = needs.get(feature, ("", True))
            if not there:
                raise ValueError(f"running.{name} has the feature {feature}, for which it needs {needed}")

    def pointers(self, definition: InputDefinition) -> Iterator[tuple[str, str]]:
        """Yield what is read of the messages of an input: settings that are pointers, with their names."""
        yield from definition.pointers()
        for name, pointer in self.entities.items():
            yield f"entities.{name}", pointer
        if definition is self.interactions:
            for name, feature in self.features.items():
                if not isinstance(feature, DerivedFeature):
                    yield f"features.{name}", feature.field

    def table_features(self) -> Iterator[tuple[str, FieldFeature]]:
        """Yield the features of all tables, by the names that predictions give them."""
        for name, table in self.tables.items():
            for feature, each in table.features.items():
                yield f"{name}_{feature}", each

    @property
    def key_entity(self) -> int | None:
        """The number of the entity whose id is the messages' key; None for the event's id."""
        if self.key is None:
            return 0 if self.entities else None
        return None if self.key == EVENT_ID else [*self.entities].index(self.key)


def entity_word(name: str) -> str:
    """Return what an id is the id of.

    Examples
    --------
    >>> entity_word("user_id"), entity_word("courier")
    ('user', 'courier')
    """
    return name.removesuffix("_id") or name


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
