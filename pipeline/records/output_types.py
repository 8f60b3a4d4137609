"""The types of a stream's outputs: with its ids and features, and the names that its definition gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import FunctionType, MappingProxyType
from typing import Annotated, Any, Final, TypeVar, cast

import msgspec

from pipeline.config.feature_layout import FeatureLayout, TableLayout
from pipeline.config.stream import KUAIREC, MAX_ITEMS, Stream
from pipeline.config.target_settings import RegressionSettings
from pipeline.records.entities import entity_fields, tuple_getter
from pipeline.records.fields import Count, Id, LabelValue, LabelWeight, WatchRatio, WrittenRatio
from pipeline.records.outcome_encoder import LabelFields
from pipeline.records.outputs import (
    EntityCounts,
    Example,
    LabelRequest,
    Outcome,
    PairCounts,
    Prediction,
    RawOutcome,
    RawPrediction,
    Share,
)
from pipeline.records.slates import Position, SlateItem, SlatePrediction, Slates, item_number

Record = TypeVar("Record", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True, eq=False)
class OutputTypes:
    """Types of the records of a stream's outputs, and decoders of these types.

    Examples
    --------
    >>> OutputTypes.of(KUAIREC).prediction is Prediction
    True
    """

    entities: int
    """The number of ids."""
    key_entity: int | None
    """The number of the entity whose id is the records' key; None for the event's id."""
    features: int
    """The number of features."""
    prediction: type[Prediction]
    """Of one item, where predictions are of slates."""
    label_request: type[LabelRequest]
    label_fields: type[LabelFields]
    outcome: type[Outcome]
    example: type[Example]
    share: type[Share]
    predictions: msgspec.json.Decoder[Prediction]
    raw_predictions: msgspec.json.Decoder[RawPrediction]
    outcomes: msgspec.json.Decoder[Outcome]
    raw_outcomes: msgspec.json.Decoder[RawOutcome]
    requests: msgspec.json.Decoder[LabelRequest]
    shares: msgspec.json.Decoder[Share]
    slates: Slates | None = None
    """The records of predictions, where they are of slates."""

    @staticmethod
    def of(stream: Stream) -> OutputTypes:
        """Return the types of a stream, compiled once."""
        key = stream.model_dump_json()
        if key not in _compiled:
            _compiled[key] = _compile(stream)
        return _compiled[key]

    def predictions_of(self, value: bytes) -> list[Prediction]:
        """Return the predictions of a record: several where it is of a slate.

        Raises
        ------
        msgspec.DecodeError, UnicodeDecodeError
            The value is no prediction.
        """
        if self.slates is None:
            return [self.predictions.decode(value)]
        return self.slates.expand(self.slates.decoder.decode(value))

    def slate_key_of(self, record: SlatePrediction) -> Id:
        """Return the id that the key of a slate's record is."""
        assert self.slates is not None, "predictions are of single items"
        return record.event_id if self.key_entity is None else self.slates.id_of(record, self.key_entity)

    def key_of(self, record: Prediction | Outcome | LabelRequest) -> Id:
        """Return the id that is a record's key."""
        return record.event_id if self.key_entity is None else record.ids[self.key_entity]


_compiled: Final[dict[str, OutputTypes]] = {}


def derived(
    record: type[Record],
    replaced: Mapping[tuple[str, ...], Mapping[str, Any]],
    names: Mapping[str, str],
    attributes: Mapping[str, Any] | None = None,
) -> type[Record]:
    """Return a type with the methods of a record's, but with other fields in place of some.

    Parameters
    ----------
    record
        The type of the record.
    replaced
        Types of new fields by name, each alone or with its default, by the names of the neighbouring fields
        that they replace. Groups of which the record lacks a field are ignored.
    names
        Names in JSON by name of the field; those of fields that there are not are ignored.
    attributes
        Attributes of the class.

    Examples
    --------
    >>> ids = {("user_id", "video_id"): {"entity_0": int}}
    >>> other = derived(LabelRequest, ids, {"entity_0": "courier"})
    >>> msgspec.json.encode(other("e", 7, 5, 0.5, 9, sequence=4))[:28]
    b'{"event_id":"e","courier":7,'
    """
    first = {group[0]: new for group, new in replaced.items()}
    gone = {name for group in replaced for name in group}
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for field in msgspec.structs.fields(record):
        for name, kind in first.get(field.name, {}).items():
            fields.append((name, *kind) if isinstance(kind, tuple) else (name, kind))
        if field.name not in gone:
            fields.append(
                (field.name, field.type) if field.required else (field.name, field.type, field.default)
            )
    settings = record.__struct_config__
    own = {name for name, *_ in fields}
    methods = {name: value for name, value in _methods(record).items() if name not in own}
    made = msgspec.defstruct(
        record.__name__,
        fields,
        namespace=methods | dict(attributes or {}),
        rename={name: names[name] for name, *_ in fields if name in names},
        frozen=settings.frozen,
        gc=settings.gc,
        array_like=settings.array_like,
        omit_defaults=settings.omit_defaults,
    )
    return cast(type[Record], made)


def _methods(record: type[msgspec.Struct]) -> dict[str, Any]:
    classes = record.__mro__[: record.__mro__.index(msgspec.Struct)]
    return {
        name: value
        for each in reversed(classes)
        for name, value in vars(each).items()
        if isinstance(value, property | classmethod | FunctionType)
    }


def _compile(stream: Stream) -> OutputTypes:
    layout = FeatureLayout.of(stream)
    if stream.is_kuairec:
        records = Prediction, RawPrediction, LabelRequest, LabelFields, Outcome, RawOutcome, Example, Share
        return _types(stream, layout, *records)
    ids, length = entity_fields(len(stream.entities)), len(layout.names)
    features: Any = Annotated[list[float], msgspec.Meta(min_length=length, max_length=length)]
    names = dict(zip(ids, stream.entities, strict=True)) | {"watch_ratio": stream.target.name}
    named: dict[tuple[str, ...], Mapping[str, Any]] = {("user_id", "video_id"): dict.fromkeys(ids, Id)}
    of_example = named | {("features",): {"features": features}}
    regression = isinstance(stream.target, RegressionSettings)
    if regression:
        named |= {("predicted",): {"predicted": float}, ("label",): {"label": float | None}}
        of_example[("label",)] = {"label": float}
    weight: dict[str, Any] = {"weight": LabelWeight} if stream.labels.weighted else {}
    value: Any = LabelValue if regression or stream.labels.signals else WatchRatio
    of_example[("watch_ratio",)] = {"watch_ratio": value} | weight
    of_label = {("watch_ratio",): {"watch_ratio": float | None} | weight}
    if weight:
        former: Any = {"former": (WrittenRatio | None, None), "former_weight": (LabelWeight | None, None)}
        of_label[("former",)] = former
    tables: dict[str, Any] = {"tables": dict[str, Count]} if stream.tables else {}
    carried = [*stream.interactions.carried]
    behind = tables | dict.fromkeys(carried, float | None)
    version = (
        {("model_version",): {"model_version": Count, "position": Position}} if stream.has_slates else {}
    )
    of_request = (
        {("prediction_sequence",): {"prediction_sequence": Count, "position": Position}}
        if stream.has_slates
        else {}
    )
    replaced = named | {("features",): {"features": features} | behind} | version
    own: dict[str, Any] = {"ids": property(tuple_getter(ids)), "weighted": bool(weight)}
    example = derived(Example, of_example, names, own)
    share = _share(layout, example)
    shared: Any = {"shared": (list[share] | None, None)}  # type: ignore[valid-type]  # made just now
    own |= {"example_type": example, **(_NUMBERS if stream.has_slates else {})}
    raw: Any = {("features",): {"features": msgspec.Raw} | behind}
    if carried:
        own |= {"carried": property(tuple_getter(carried))}
    prediction = derived(Prediction, replaced, names, own)
    types = _types(
        stream,
        layout,
        prediction,
        derived(RawPrediction, replaced | raw, names, own),
        derived(LabelRequest, replaced | of_request, names, own),
        derived(LabelFields, of_label | {("shared",): shared}, names),
        derived(Outcome, replaced | of_label | {("shared",): shared}, names, own),
        derived(
            RawOutcome,
            replaced | of_label | raw | {("shared",): shared},
            names,
            own | {"features_decoder": msgspec.json.Decoder(features)},
        ),
        example,
        share,
    )
    return replace(types, slates=_slates(stream, prediction, replaced, names)) if stream.has_slates else types


_NUMBERS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "number": property(lambda record: item_number(record.sequence, record.position)),
        "prediction_number": property(
            lambda record: item_number(record.prediction_sequence, record.position)
        ),
        "in_slate": property(lambda record: (record.position,)),
    }
)
"""What tells apart the predictions of a slate's items."""


def _slates(
    stream: Stream,
    prediction: type[Prediction],
    replaced: Mapping[tuple[str, ...], Mapping[str, Any]],
    names: Mapping[str, str],
) -> Slates:
    """Return the types of a stream's slates, given those of the prediction of an item."""
    ids, own = entity_fields(len(stream.entities)), stream.item_entities
    of_items = [ids[number] for number in own]
    of_message = [name for name in ids if name not in of_items]
    features = dict(replaced[("features",)])
    tables = {name: features.pop(name) for name in ("tables",) if name in features}
    predicted: dict[tuple[str, ...], Mapping[str, Any]] = {
        key: fields for key, fields in replaced.items() if key == ("predicted",)
    }
    item = derived(
        SlateItem,
        {("video_id",): dict.fromkeys(of_items, Id), ("features",): features} | predicted,
        names,
        {
            "ids": property(tuple_getter(of_items)),
            "carried": property(tuple_getter([*stream.interactions.carried])),
        },
    )
    listed = list[item], msgspec.Meta(min_length=1, max_length=MAX_ITEMS)  # type: ignore[valid-type]  # made just now
    record = derived(
        SlatePrediction,
        {
            ("user_id",): dict.fromkeys(of_message, Id),
            ("items",): {"items": Annotated[listed]} | tables,
        },
        names,
        {"ids": property(tuple_getter(of_message))},
    )
    entities = len(stream.entities)
    return Slates(record, item, prediction, item_entities=own, entities=entities, tables=bool(tables))


def _types(  # noqa: PLR0917 - one type after the other
    stream: Stream,
    layout: FeatureLayout,
    prediction: type[Prediction],
    raw_prediction: type[RawPrediction],
    request: type[LabelRequest],
    label_fields: type[LabelFields],
    outcome: type[Outcome],
    raw: type[RawOutcome],
    example: type[Example],
    share: type[Share],
) -> OutputTypes:
    decoder = msgspec.json.Decoder
    return OutputTypes(
        len(stream.entities),
        stream.key_entity,
        len(layout.names),
        prediction,
        request,
        label_fields,
        outcome,
        example,
        share,
        decoder(prediction),
        decoder(raw_prediction),
        decoder(outcome),
        decoder(raw),
        decoder(request),
        decoder(share),
    )


def _share(layout: FeatureLayout, example: type[Example]) -> type[Share]:
    """Return the type of shares, with a list of counts for each shared table."""
    fields = [f"counts_{number}" for number in layout.shared]
    counts = [list[counts_of(layout.tables[number])] for number in layout.shared]  # type: ignore[misc]  # as below
    table = layout.shared_effects
    examples: Any = list[example]  # type: ignore[valid-type]  # made just now
    return derived(
        Share,
        {("videos",): dict(zip(fields, counts, strict=True)), ("examples",): {"examples": examples}},
        {name: layout.tables[number].name for name, number in zip(fields, layout.shared, strict=True)},
        {
            "counts": property(tuple_getter(fields)),
            "effects_table": None if table is None else layout.shared.index(table),
        },
    )


def counts_of(table: TableLayout) -> type[EntityCounts]:
    """Return the type of what partitions share of a table's keys."""
    return EntityCounts if len(table.parts) == 1 else PairCounts


KUAIREC_TYPES: Final = OutputTypes.of(KUAIREC)
"""The types of KuaiRec's stream."""
