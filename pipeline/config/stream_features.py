"""The features of a stream: fields of its messages, running statistics, and tables of what messages name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from pipeline.config.durations import Milliseconds
from pipeline.config.pointer import Pointer
from pipeline.config.section import Name, Section, TopicName
from pipeline.config.times import TimeSettings, UtcOffset

MAX_NUMBER: Final = 1e15
"""The largest magnitude of a number that is a feature."""
MAX_COLUMNS: Final = 1024
"""Columns of a category, and length of a vector, at most."""
MAX_WORDS: Final = 256
"""Words of a text, at most."""

Finite = Annotated[float, Field(ge=-MAX_NUMBER, le=MAX_NUMBER)]


class NumberFeature(Section):
    """A number of the message."""

    kind: Literal["number"]
    field: Pointer
    log: bool = False
    """Whether the feature is log(1 + x), and -log(1 - x) for x below 0, of the clipped number."""
    clip: tuple[Finite, Finite] | None = None
    """The least and the largest value: numbers beyond count as these."""
    missing: Finite | None = None
    """What counts where the field is absent or null; None if such a message is refused."""
    indicator: bool = False
    """Whether there is one more feature, which is 1 where the field is absent or null and else 0."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.indicator and self.missing is None:
            raise ValueError("indicator tells where the field is missing: set missing to what counts there")
        if self.clip is not None and self.clip[0] >= self.clip[1]:
            raise ValueError("clip is the least value, and then a larger one")
        return self


class BooleanFeature(Section):
    """True or false, as 1 and 0."""

    kind: Literal["boolean"]
    field: Pointer
    missing: bool | None = None
    """As for numbers."""


class CategoryFeature(Section):
    """A category: text or a whole number, of any number of values."""

    kind: Literal["category"]
    field: Pointer
    columns: int | None = Field(None, ge=2, le=MAX_COLUMNS)
    """None for weights of each value in the learner's sparse part. Otherwise how many columns of its dense
    part there are, to one of which a value is hashed; values may share one."""
    missing: str | None = Field(None, max_length=256)
    """As for numbers."""


class TextFeature(Section):
    """A text, as a weight of each of its words in the learner's sparse part."""

    kind: Literal["text"]
    field: Pointer
    words: int = Field(32, ge=1, le=MAX_WORDS)
    """How many different words count, the first ones: each has a place in the features of a prediction."""
    ngram: int | None = Field(None, ge=2, le=16)
    """Characters of an n-gram; None for words."""
    missing: str | None = Field(None, max_length=256)
    """As for numbers."""


class VectorFeature(Section):
    """A vector of fixed length, such as an embedding."""

    kind: Literal["vector"]
    field: Pointer
    length: int = Field(ge=1, le=MAX_COLUMNS)
    missing: Finite | None = None
    """What each element counts as where the field is absent or null; None if such a message is refused."""


class IdFeature(Section):
    """The id of an entity as a category too."""

    kind: Literal["id"]
    entity: Name
    """The entity."""


class TimeFeature(Section):
    """The hour of the day or the day of the week."""

    kind: Literal["hour", "weekday"]
    encoding: Literal["cyclic", "category"] = "cyclic"
    """Whether it is sine and cosine of where it is in the cycle, or a category of 24 or 7 values."""
    utc_offset: UtcOffset = Field("+00:00")  # type: ignore[assignment]  # validated like any other value
    """Local time, as "+08:00"."""


FieldFeature: TypeAlias = NumberFeature | BooleanFeature | CategoryFeature | TextFeature | VectorFeature
"""A feature that a field of the message has."""
DerivedFeature: TypeAlias = IdFeature | TimeFeature
"""One that comes of an id or of the time, and has no field of its own."""
EventFeature: TypeAlias = Annotated[FieldFeature | DerivedFeature, Field(discriminator="kind")]
"""A feature that a message has by itself."""


def is_sparse(feature: EventFeature) -> bool:
    """Whether a feature is a category that has weights of its values in the learner's sparse part.

    Examples
    --------
    >>> [is_sparse(CategoryFeature(kind="category", field="/site", columns=each)) for each in (None, 32)]
    [True, False]
    """
    match feature:
        case CategoryFeature(columns=columns):
            return columns is None
        case TimeFeature(encoding=encoding):
            return encoding == "category"
    return isinstance(feature, IdFeature)


RunningFeature: TypeAlias = Literal[
    "label_mean",
    "label_logit",
    "value_mean",
    "log_count",
    "leaning_label_mean",
    "leaning_value_mean",
    "recent_label_mean",
    "recent_value_mean",
    "recent_residual",
    "log_recent_count",
    "log_since_last",
    "effect",
    "noise",
]
"""What is known of an entity from the labels of its earlier events: see `pipeline.features.feature_set`."""


def _distinct(names: tuple[RunningFeature, ...]) -> tuple[RunningFeature, ...]:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"{', '.join(sorted(twice))} stands there twice")
    return names


class RunningTable(Section):
    """Running statistics by an entity, by a category, by a number in bins, or by a pair of these."""

    of: tuple[str, ...] | None = Field(None, min_length=1, max_length=2)
    """The names of one or two of these; None for the one that the table is called by."""
    features: Annotated[tuple[RunningFeature, ...], AfterValidator(_distinct)] | None = Field(
        None, min_length=1
    )
    """None for label mean, its logit, value mean and log count, and what the settings below give."""
    leans_on: str | None = None
    """Another table, towards whose mean those of this one lean while there are few labels."""
    half_life: Milliseconds | None = Field(None, ge=1_000)
    """After so long, an event counts half in the recent means."""

    @model_validator(mode="before")
    @classmethod
    def _nothing(cls, value: Any) -> Any:
        return {} if value is None else value


class LiveTable(TimeSettings):
    """A compacted topic, read as a table: the newest record of a key is its row, and null deletes it."""

    topic: TopicName
    """The topic's name, without `kafka.input_prefix`."""
    entity: Name
    """The entity whose id is the key of a record."""
    id: Pointer | None = None
    """Where a record names the id itself, which then has to be that of its key; None if it does not."""
    time: Pointer | None = None
    """From when on a record holds; None for the time that Kafka has of it, as for records without a value."""
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
