"""The columns of an export: the fields of the records, as Parquet has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
import polars as pl

from pipeline.config.target_settings import RegressionSettings
from pipeline.config.tree import Config
from pipeline.features.feature_set import FeatureSet
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import Outcome, Prediction

What: TypeAlias = Literal["predictions", "outcomes"]
Records: TypeAlias = Sequence[Prediction | Outcome]

LEFT_OUT: Final = frozenset({"shared"})
"""Fields that are not exported: the shares repeat what is in the outcomes of other partitions."""
TYPES: Final = {
    "timestamp": pl.Int64,
    "score": pl.Float64,
    "probability": pl.Float64,
    "predicted": pl.Boolean,
    "model_version": pl.Int64,
    "sequence": pl.Int64,
    "asked": pl.Boolean,
    "prediction_sequence": pl.Int64,
    "watch_ratio": pl.Float64,
    "label": pl.Boolean,
    "label_timestamp": pl.Int64,
    "correct": pl.Boolean,
    "loss": pl.Float64,
    "status": pl.String,
    "former": pl.Float64,
    "weight": pl.Float64,
}
"""Types of columns by field of the record; those of other fields depend on the stream."""
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
    config
        The whole configuration.
    what
        Which records.

    Examples
    --------
    >>> columns = Columns(Config(), "outcomes")
    >>> list(columns.schema)[:6]
    ['offset', 'event_id', 'user_id', 'video_id', 'timestamp', 'score']
    >>> columns.schema["features"].fields[0].name
    'user_label_mean'
    """

    def __init__(self, config: Config, what: What) -> None:
        stream = config.stream
        types = OutputTypes.of(stream)
        record: type[msgspec.Struct] = types.prediction if what == "predictions" else types.outcome
        self.decoder: msgspec.json.Decoder[Any] = (
            types.predictions if what == "predictions" else types.outcomes
        )
        """Decodes the records."""
        regression = isinstance(stream.target, RegressionSettings)
        names = FeatureSet.of(stream, config.features.kind).names
        self._columns = [
            _column(field, names, [*stream.tables], regression=regression)
            for field in msgspec.structs.fields(record)
            if field.name not in LEFT_OUT
        ]
        self.schema: dict[str, Any] = {"offset": pl.Int64} | {
            column.name: column.dtype for column in self._columns
        }
        """Types by name."""

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


def _column(
    field: msgspec.structs.FieldInfo, features: Sequence[str], tables: Sequence[str], *, regression: bool
) -> _Column:
    def plain(records: Records) -> list[Any]:
        return [getattr(record, field.name) for record in records]

    name, values = field.encode_name, plain
    dtype: Any = TYPES.get(field.name, pl.String)
    if field.name in {"predicted", "label"} and regression:
        dtype = pl.Float64
    elif field.name == "features":
        dtype = pl.Struct(dict.fromkeys(features, pl.Float64))

        def values(records: Records) -> list[Any]:
            return [dict(zip(features, record.features, strict=True)) for record in records]

    elif field.name == "challengers":
        dtype = SCORES

        def values(records: Records) -> list[Any]:
            return [_pairs(record.challengers) for record in records]

    elif field.name == "tables":
        dtype = pl.Struct(dict.fromkeys(tables, pl.Int64))
    elif field.name not in TYPES:  # an id

        def values(records: Records) -> list[Any]:
            return [str(getattr(record, field.name)) for record in records]

    return _Column(name, dtype, values)


def _pairs(scores: dict[str, float] | None) -> list[dict[str, Any]] | None:
    return None if scores is None else [{"name": name, "score": score} for name, score in scores.items()]
