"""The columns of an export: the fields of the records, as Parquet has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import msgspec
import polars as pl

from pipeline.config.feature_layout import FeatureKind
from pipeline.config.stream import Stream
from pipeline.features.feature_set import FeatureSet
from pipeline.log.decoding import decode_predictions, decode_records
from pipeline.records.inputs import KafkaMessage
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import Outcome, Prediction

What: TypeAlias = Literal["predictions", "outcomes"]
Records: TypeAlias = Sequence[Prediction | Outcome]

LEFT_OUT: Final = frozenset({"shared"})
"""Fields that are not exported: the shares repeat what is in the outcomes of other partitions."""
TYPES: Final[dict[type, Any]] = {
    msgspec.inspect.IntType: pl.Int64,
    msgspec.inspect.FloatType: pl.Float64,
    msgspec.inspect.BoolType: pl.Boolean,
    msgspec.inspect.StrType: pl.String,
    msgspec.inspect.LiteralType: pl.String,
}
"""Types of columns by type of the field."""
SCORES: Final = pl.List(pl.Struct({"name": pl.String, "score": pl.Float64}))
"""The type of the challengers' scores."""


class _Column(NamedTuple):
    name: str
    dtype: Any
    values: Callable[[Records], list[Any]]


class Columns:
    """The columns of one kind of records.

    Ids are text, because an id may be a whole number or text. The features are a struct, whose fields have
    their names, and so are the versions of live tables. The scores of challengers are a list of pairs.

    Parameters
    ----------
    stream
        The definition of the stream.
    kind
        The kind of running features.
    what
        Which records.

    Examples
    --------
    >>> from pipeline.config.stream import KUAIREC
    >>> columns = Columns(KUAIREC, "effects", "outcomes")
    >>> list(columns.schema)[:6]
    ['offset', 'event_id', 'user_id', 'video_id', 'timestamp', 'score']
    >>> columns.schema["features"].fields[0].name
    'user_label_mean'
    """

    def __init__(self, stream: Stream, kind: FeatureKind, what: What) -> None:
        types = OutputTypes.of(stream)
        record: type[msgspec.Struct] = types.prediction if what == "predictions" else types.outcome
        self._types, self._what = types, what
        names = FeatureSet.of(stream, kind).names
        self._columns = [
            _column(field, names, [*stream.tables])
            for field in cast("msgspec.inspect.StructType", msgspec.inspect.type_info(record)).fields
            if field.name not in LEFT_OUT
        ]
        self.schema: dict[str, Any] = {"offset": pl.Int64} | {
            column.name: column.dtype for column in self._columns
        }
        """Types by name."""

    def decode(self, messages: Sequence[KafkaMessage]) -> list[Sequence[Any]]:
        """Return the rows of each message: of a slate, one for each item.

        Raises
        ------
        StateError
            No worker can have written one of them.
        """
        if self._what == "predictions" and self._types.slates is not None:
            return [decode_predictions(self._types, message) for message in messages]
        decoder: msgspec.json.Decoder[Any] = (
            self._types.predictions if self._what == "predictions" else self._types.outcomes
        )
        return [[record] for record in decode_records(decoder, messages)]

    def frame(self, offsets: Sequence[int], records: Records) -> pl.DataFrame:
        """Return records as a table.

        Parameters
        ----------
        offsets
            Offsets of the records.
        records
            The records.
        """
        series = [pl.Series("offset", offsets, pl.Int64)]
        series += [
            pl.Series(column.name, column.values(records), column.dtype, strict=True)
            for column in self._columns
        ]
        return pl.DataFrame(series)


def _column(field: msgspec.inspect.Field, features: Sequence[str], tables: Sequence[str]) -> _Column:
    def plain(records: Records) -> list[Any]:
        return [getattr(record, field.name) for record in records]

    def texts(records: Records) -> list[Any]:
        return [str(getattr(record, field.name)) for record in records]

    def structs(records: Records) -> list[Any]:
        return [dict(zip(features, record.features, strict=True)) for record in records]

    def pairs(records: Records) -> list[Any]:
        return [_pairs(record.challengers) for record in records]

    name = field.encode_name
    if field.name == "features":
        return _Column(name, pl.Struct(dict.fromkeys(features, pl.Float64)), structs)
    if field.name == "challengers":
        return _Column(name, SCORES, pairs)
    if field.name == "tables":
        return _Column(name, pl.Struct(dict.fromkeys(tables, pl.Int64)), plain)
    kinds = _kinds(field.type)
    if len(kinds) > 1:  # an id
        return _Column(name, pl.String, texts)
    return _Column(name, TYPES[kinds[0]], plain)


def _kinds(found: msgspec.inspect.Type) -> list[type]:
    """Return the types that a value may have, besides None."""
    if isinstance(found, msgspec.inspect.Metadata):
        return _kinds(found.type)
    if isinstance(found, msgspec.inspect.UnionType):
        return [kind for each in found.types for kind in _kinds(each)]
    return [] if isinstance(found, msgspec.inspect.NoneType) else [type(found)]


def _pairs(scores: dict[str, float] | None) -> list[dict[str, Any]] | None:
    return None if scores is None else [{"name": name, "score": score} for name, score in scores.items()]
