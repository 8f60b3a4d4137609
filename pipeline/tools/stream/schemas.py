"""JSON Schemas of the records that a worker reads and writes, made of the types that read and write them.

What a field means is said once, below the field in its type. What is always true of a field that is written,
though nothing checks it where it is read, stands in its type too: see `pipeline.records.fields.always`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import inspect

from pipeline.config.feature_layout import FeatureLayout
from pipeline.config.stream import CARRIED, KUAIREC, Stream
from pipeline.config.target_settings import RegressionSettings
from pipeline.records.fields import Count
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.records.names import (
    EXCEPTION_HEADER,
    LENGTH_HEADER,
    MESSAGE_HEADER,
    OFFSET_HEADER,
    PARTITION_HEADER,
    SHA256_HEADER,
    TOPIC_HEADER,
    Fault,
)
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import (
    EffectSums,
    EntityCounts,
    Example,
    LabelRequest,
    Outcome,
    PairCounts,
    Prediction,
    Share,
)
from pipeline.records.slates import SlateItem, SlatePrediction
from pipeline.task.state import COUNTER_MEANINGS, RARE_COUNTER_MEANINGS, State
from pipeline.tools.docstrings import attribute_docstrings, summary

Schema: TypeAlias = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE: Final = "#/$defs/"
_KUAIREC_TYPES: Final[Mapping[str, type[msgspec.Struct]]] = MappingProxyType(
    {
        each.__name__: each
        for each in (
            Prediction,
            Outcome,
            LabelRequest,
            Share,
            Example,
            EntityCounts,
            PairCounts,
            EffectSums,
            SlateItem,
            SlatePrediction,
        )
    }
)
"""The types that those of other streams are derived from, by the name that both have."""


CARRIED_MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    dict(
        zip(
            CARRIED,
            (
                "The probability with which what was shown was chosen, as the interaction has it; null if it "
                "has none.",
                "The probability with which the target policy would have chosen it; null likewise.",
                "What a model expected of its label; null likewise.",
                "What that model expected of what the target policy would show; null likewise.",
            ),
            strict=True,
        )
    )
)
"""What the numbers mean that outputs carry as interactions have them, by name."""


def schemas_of(stream: Stream) -> dict[str, Schema]:
    """Return the JSON Schema of each output of a stream by the name of its record.

    Features are named in their order. The schemas accept what the audit and a restart accept: fields that
    are not named may be there.

    Examples
    --------
    >>> schemas = schemas_of(KUAIREC)
    >>> sorted(schemas)
    ['label-request', 'outcome', 'prediction', 'share']
    >>> schemas["prediction"]["properties"]["features"]["prefixItems"][1]["title"]
    'user_effect'
    >>> schemas["outcome"]["properties"]["label_timestamp"]["description"]
    "The label's timestamp; null if none came."
    """
    types = OutputTypes.of(stream)
    records: dict[str, type[msgspec.Struct]] = {
        "prediction": types.prediction if types.slates is None else types.slates.record,
        "outcome": types.outcome,
        "label-request": types.label_request,
        "share": types.share,
    }
    schemas = {name: _schema(name, record, stream) for name, record in records.items()}
    schemas["outcome"] |= _outcome_conditions(stream)
    return schemas


def all_schemas() -> dict[str, Schema]:
    """Return the JSON Schema of each record of KuaiRec's stream by its name: the files in `schemas/`."""
    state = _schema("state", State, KUAIREC)
    state["properties"]["counters"] |= _counters()
    return schemas_of(KUAIREC) | {
        "interaction": _schema("interaction", KuaiRecInteraction, KUAIREC),
        "watch-label": _schema("watch-label", WatchLabel, KUAIREC),
        "state": state,
        "dead-letter-headers": _dead_letter_headers(),
    }


def is_always_written(record: type[msgspec.Struct], field: msgspec.structs.FieldInfo) -> bool:
    """Return whether a field is in all records of its type."""
    if field.required:
        return True
    return not record.__struct_config__.omit_defaults and field.default is not msgspec.UNSET


def _schema(name: str, record: type[msgspec.Struct], stream: Stream) -> Schema:
    [reference], definitions = msgspec.json.schema_components([record], ref_template=_REFERENCE + "{name}")
    features, texts = FeatureLayout.of(stream).names, _texts_of(stream)
    for struct in dict.fromkeys(_structs(inspect.type_info(record))):
        _describe(definitions[struct.__name__], struct, texts, features)
    own = definitions.pop(reference["$ref"].removeprefix(_REFERENCE))
    key = "event_id" if stream.key_entity is None else [*stream.entities][stream.key_entity]
    if key in own["properties"]:
        own["properties"][key]["description"] += " As text it is the record's key."
    whole: Schema = {"$schema": DIALECT} | own | {"title": name}
    return whole | ({"$defs": definitions} if definitions else {})


def _structs(info: inspect.Type) -> Iterator[type[msgspec.Struct]]:
    """Yield a record's type and those of its parts."""
    match info:
        case inspect.Metadata(type=inner):
            yield from _structs(inner)
        case inspect.StructType(cls=cls, fields=fields):
            yield cls
            for field in fields:
                yield from _structs(field.type)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            yield from _structs(item)
        case inspect.DictType(value_type=value):
            yield from _structs(value)
        case inspect.UnionType(types=types):
            for each in types:
                yield from _structs(each)


def _texts_of(stream: Stream) -> dict[str, str]:
    """Return the descriptions of those fields that a stream's definition names, and of those that it adds."""
    if stream.is_kuairec:
        return {}
    layout = FeatureLayout.of(stream)
    texts = {name: f"The {name}." for name in stream.entities}
    shared = [layout.tables[number].name for number in layout.shared]
    texts |= dict.fromkeys(shared, "Label counts by the keys of this table.")
    texts["weight"] = "How many labels it counts as."
    texts["former_weight"] = "The weight of the label that was learned before. Absent if it is 1."
    texts["tables"] = "Up to which offset each live table was applied, by its name."
    texts["position"] = "The place of the item in its slate, from 0."
    texts |= CARRIED_MEANINGS
    if isinstance(stream.target, RegressionSettings):
        texts["predicted"] = "The number that is predicted."
    return texts


def _describe(
    definition: Schema, record: type[msgspec.Struct], texts: Mapping[str, str], features: tuple[str, ...]
) -> None:
    """Add to a type's schema what its fields mean, which are always there, and the names of features."""
    base = _KUAIREC_TYPES.get(record.__name__, record)
    own: dict[str, str] = {}
    for each in reversed(base.__mro__[: base.__mro__.index(msgspec.Struct)]):
        own |= attribute_docstrings(each)
    definition["description"] = summary(base)
    fields = msgspec.structs.fields(record)
    in_list = record.__struct_config__.array_like
    parts = definition["prefixItems"] if in_list else [*definition["properties"].values()]
    for field, part in zip(fields, parts, strict=True):
        part.pop("default", None)
        if not is_always_written(record, field):
            _drop_null(part)
        part["description"] = texts.get(field.encode_name, own.get(field.name, ""))
        if field.name == "features":
            part["prefixItems"] = [{"type": "number", "title": name} for name in features]
            part["items"] = False
        if in_list:
            part["title"] = field.encode_name
    if not in_list:
        definition["required"] = [each.encode_name for each in fields if is_always_written(record, each)]


def _drop_null(part: Schema) -> None:
    """Refuse null where a field is left out instead."""
    kinds = [kind for kind in part.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == 1:
        del part["anyOf"]
        part |= kinds[0]


def _counters() -> Schema:
    count: Schema = msgspec.json.schema(Count)
    meanings = {**COUNTER_MEANINGS, **RARE_COUNTER_MEANINGS}
    return {
        "properties": {name: count | {"description": text} for name, text in meanings.items()},
        "required": [*COUNTER_MEANINGS],
    }


def _outcome_conditions(stream: Stream) -> Schema:
    """Return what fields of an outcome say of one another."""
    null, learned = {"type": "null"}, ["label", "loss"]
    if not isinstance(stream.target, RegressionSettings):
        learned.append("correct")
    label = [stream.target.name, "label_timestamp"]
    asked = {"status": {"const": "labelled"}, "asked": {"const": True}}
    without = {"label": {"enum": [False, None]}} | dict.fromkeys(label, null)
    return {
        "if": {"properties": {"status": {"const": "expired"}}},
        "then": {"properties": without},
        "else": {"properties": {name: {"not": null} for name in label}},
        "allOf": [
            {
                "if": {"properties": asked},
                "then": {"properties": {name: {"not": null} for name in learned}},
            }
        ],
    }


def _dead_letter_headers() -> Schema:
    text: Schema = {"type": "string", "minLength": 1}
    number: Schema = {"type": "string", "pattern": "^[0-9]+$"}
    faults: Schema = {"enum": [fault.value for fault in Fault]}
    headers: dict[str, tuple[Schema, str]] = {
        EXCEPTION_HEADER: (faults, "The reason as a name, which is also the counter of such messages."),
        MESSAGE_HEADER: (text, "Why the message was rejected."),
        TOPIC_HEADER: (text, "The topic of the message."),
        PARTITION_HEADER: (number, "The message's partition in that topic, in decimal digits."),
        OFFSET_HEADER: (number, "The message's offset in that partition, in decimal digits."),
    }
    digest: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    of_cut: dict[str, tuple[Schema, str]] = {
        LENGTH_HEADER: (number, "Bytes of the message's value, if it was cut."),
        SHA256_HEADER: (digest, "SHA-256 of the message's value, if it was cut."),
    }
    every = headers | of_cut
    return {
        "$schema": DIALECT,
        "title": "dead-letter-headers",
        "description": "The headers that a dead letter has behind those of the rejected message, as an "
        "object of texts. Value and key are those of the message, or the beginnings where it was cut.",
        "type": "object",
        "properties": {name: kind | {"description": says} for name, (kind, says) in every.items()},
        "required": [*headers],
    }
