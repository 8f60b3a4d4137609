"""JSON Schemas of a stream's outputs, made of the types that write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pipeline.config.feature_layout import FeatureLayout
from pipeline.config.stream import Stream
from pipeline.records.output_types import OutputTypes

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schemas_of(stream: Stream) -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each output by the name of its record.

    Features are named in their order. The schemas accept what the audit and a restart accept: fields that
    are not named may be there.

    Examples
    --------
    >>> from pipeline.config.stream import KUAIREC
    >>> schemas = schemas_of(KUAIREC)
    >>> sorted(schemas)
    ['label-request', 'outcome', 'prediction', 'share']
    >>> schemas["prediction"]["properties"]["features"]["prefixItems"][1]["title"]
    'user_effect'
    """
    types, names = OutputTypes.of(stream), FeatureLayout.of(stream).names
    records: dict[str, type[Any]] = {
        "prediction": types.prediction,
        "outcome": types.outcome,
        "label-request": types.label_request,
        "share": types.share,
    }
    return {name: _schema(name, record, names) for name, record in records.items()}


def _schema(name: str, record: type[Any], names: tuple[str, ...]) -> dict[str, Any]:
    [reference], definitions = msgspec.json.schema_components([record], ref_template="#/$defs/{name}")
    for definition in definitions.values():
        for features in _features(definition):
            features["prefixItems"] = [{"type": "number", "title": each} for each in names]
            features["items"] = False
    own = definitions.pop(reference["$ref"].removeprefix("#/$defs/"))
    own["title"] = name
    whole: dict[str, Any] = {"$schema": DIALECT} | own
    return whole | ({"$defs": definitions} if definitions else {})


def _features(definition: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the places of features: a field of a record, or a part of a training example."""
    if "features" in definition.get("properties", {}):
        yield definition["properties"]["features"]
    if definition.get("title") == "Example":
        [features] = [each for each in definition["prefixItems"] if each.get("type") == "array"]
        yield features
