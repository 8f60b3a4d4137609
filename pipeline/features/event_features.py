"""Features that a message has by itself: numbers, booleans, categories, words, vectors, hours and weekdays.

A prediction carries them behind its running features, a category as its hash or the number of its column, and
a text as the hashes of its words. So what a model has learned can be derived from outputs alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias, cast
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from forks.compiled.logarithm import log1p
from forks.compiled.trigonometry import cosine_and_sine
from forks.sparse import category, word_hashes, words_of
from pipeline.config.feature_layout import names_of
from pipeline.config.stream import Stream
from pipeline.config.stream_features import (
    BooleanFeature,
    CategoryFeature,
    EventFeature,
    FieldFeature,
    IdFeature,
    NumberFeature,
    TextFeature,
    TimeFeature,
    VectorFeature,
    is_sparse,
)
from pipeline.records.entities import entity_fields
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction, feature_field

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Fields: TypeAlias = Callable[[str], Sequence[Any]]
"""Returns a field of several interactions, given its name."""

DECIMALS: Final = 6
"""Decimals of logarithms, sines and cosines."""
MINUTE: Final = 60_000
HOUR: Final = 60
DAY: Final = 1_440
"""Minutes of an hour and of a day."""
_FIRST_WEEKDAY: Final = 3
"""1970 began on the fourth day of a week from Monday on."""


@cache
def _cycle(length: int) -> Floats:
    """Return sine and cosine of each place in a cycle, shape (length, 2)."""
    waves = [cosine_and_sine(2.0 * math.pi * place / length) for place in range(length)]
    return np.array([[round(sine, DECIMALS), round(cosine, DECIMALS)] for cosine, sine in waves])


def bucket_of(category: Id, columns: int) -> int:
    """Return the column of a category, which depends on its text alone.

    Examples
    --------
    >>> bucket_of("pizza", 32), bucket_of(7, 32) == bucket_of("7", 32)
    (15, True)
    """
    return crc32(str(category).encode()) % columns


@dataclass(frozen=True, eq=False)
class EventFeatures:
    """The features of a stream's messages.

    Attributes
    ----------
    names
        Their names; a vector has one for each element, a place in a cycle has two.
    categories
        Of each category that has columns, its place among `names` and their number.
    """

    names: tuple[str, ...]
    categories: tuple[tuple[int, int], ...]
    _columns: tuple[Callable[[Fields, Integers], Floats], ...]
    _texts: tuple[Callable[[Interaction], Iterable[tuple[str, str]]], ...]

    @classmethod
    def of(cls, stream: Stream) -> EventFeatures:
        """Return the features that a definition names."""
        names, categories, columns, texts = list[str](), list[tuple[int, int]](), [], []
        for number, (name, feature) in enumerate(stream.features.items()):
            if isinstance(feature, CategoryFeature) and feature.columns is not None:
                categories.append((len(names), feature.columns))
            names += names_of(name, feature)
            columns.append(_column(number, name, feature, stream))
            if is_sparse(feature) or isinstance(feature, TextFeature):
                texts.append(_texts(number, name, feature, stream))
        return cls(tuple(names), tuple(categories), tuple(columns), tuple(texts))

    def values(self, interactions: Sequence[Interaction], timestamps: Integers) -> Floats:
        """Return the features of interactions, shape (n, columns).

        Parameters
        ----------
        interactions
            As `pipeline.records.input_decoders` decodes them.
        timestamps
            Their times in milliseconds, shape (n,).
        """
        return self.values_of(lambda name: [getattr(each, name) for each in interactions], timestamps)

    def values_of(self, fields: Fields, timestamps: Integers) -> Floats:
        """Do the same, given what returns a field of all interactions."""
        if not (self._columns and len(timestamps)):
            return np.empty((len(timestamps), 0))
        return np.hstack([column(fields, timestamps) for column in self._columns])

    def texts(self, interaction: Interaction) -> dict[str, str]:
        """Return what categories, words and ids are called, by the names of their features.

        What the interaction does not have is left out.
        """
        return {name: text for texts in self._texts for name, text in texts(interaction)}


def _texts(
    number: int, name: str, feature: EventFeature, stream: Stream
) -> Callable[[Interaction], Iterable[tuple[str, str]]]:
    """Return what makes the texts of the columns of a category, a text, an id or a time."""
    if isinstance(feature, TimeFeature):
        of_times = _times(feature)
        return lambda event: [(name, f"{of_times(_no_field, np.array([event.timestamp]))[0, 0]:.0f}")]
    if isinstance(feature, IdFeature):
        place = [*stream.entities].index(feature.entity)
        return lambda interaction: [(name, str(interaction.ids[place]))]
    field, names = feature_field(number), names_of(name, feature)

    def texts(interaction: Interaction) -> Iterable[tuple[str, str]]:
        value = getattr(interaction, field, None)
        if value is None:
            return ()
        if isinstance(feature, TextFeature):
            return zip(names, dict.fromkeys(words_of(value, feature.ngram)), strict=False)
        return [(name, str(value))]

    return texts


def _column(
    number: int, name: str, feature: EventFeature, stream: Stream
) -> Callable[[Fields, Integers], Floats]:
    """Return what makes a feature's columns, shape (n, columns)."""
    if isinstance(feature, TimeFeature):
        return _times(feature)
    if isinstance(feature, IdFeature):
        field: str = entity_fields(len(stream.entities))[[*stream.entities].index(feature.entity)]
        convert: Callable[[Any], object] = category
    elif is_sparse(feature) and feature.missing is None:
        field, convert = feature_field(number), category  # a value is never missing
    else:
        field, convert = feature_field(number), conversion(name, feature)

    def column(fields: Fields, timestamps: Integers) -> Floats:
        found = np.array([*map(convert, fields(field))], dtype=np.float64)
        return found.reshape(len(timestamps), -1)

    return column


def _no_field(name: str) -> Sequence[Any]:
    """Stand for the fields of interactions, where none is read."""
    raise KeyError(name)


def _times(feature: TimeFeature) -> Callable[[Fields, Integers], Floats]:
    def column(_: Fields, timestamps: Integers) -> Floats:
        minutes = timestamps // MINUTE + feature.utc_offset
        weekdays = (minutes // DAY + _FIRST_WEEKDAY) % 7
        if feature.encoding == "category":
            found = minutes % DAY // HOUR if feature.kind == "hour" else weekdays
            return found.astype(np.float64).reshape(-1, 1)
        return _cycle(DAY)[minutes % DAY] if feature.kind == "hour" else _cycle(7)[weekdays]

    return column


def conversion(name: str, feature: FieldFeature) -> Callable[[Any], object]:
    """Return what makes a feature of this name of a field's value, which is None where it is missing."""
    match feature:
        case TextFeature(words=words, ngram=ngram):
            nothing = feature.missing or ""
            return lambda value: word_hashes(nothing if value is None else value, name, words, ngram)
        case CategoryFeature(columns=columns):
            missing = "" if feature.missing is None else feature.missing
            if columns is None:
                return lambda value: category(missing if value is None else value)
            return lambda value: bucket_of(missing if value is None else value, columns)
        case BooleanFeature():
            return _or(feature.missing)
        case NumberFeature():
            return _of_number(feature)
        case VectorFeature(length=length):
            zeros = [feature.missing or 0.0] * length
            return lambda value: zeros if value is None else value


def _or(missing: float | None) -> Callable[[Any], object]:
    return lambda value: missing if value is None else value


def _of_number(feature: NumberFeature) -> Callable[[Any], object]:
    if feature.indicator:
        return lambda value: [_number(feature, value), float(value is None)]
    if feature.log or feature.clip is not None:
        return lambda value: _number(feature, value)
    return _or(feature.missing)


def _number(feature: NumberFeature, value: float | None) -> float:
    found = cast(float, feature.missing if value is None else value)
    if feature.clip is not None:
        found = min(max(found, feature.clip[0]), feature.clip[1])
    return round(math.copysign(log1p(abs(float(found))), found), DECIMALS) if feature.log else found
