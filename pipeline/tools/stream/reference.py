"""Make `docs/records.md` and `schemas/`.

``python -m pipeline.tools.stream.reference docs/records.md schemas``
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from pipeline.config.stream import KUAIREC, Stream
from pipeline.config.topics import Topics
from pipeline.model.snapshot import SnapshotScalars
from pipeline.records.fields import Count, Id, IdPair, Timestamp
from pipeline.records.names import ERROR_HEADERS, MAC_HEADER, REDRIVEN_HEADER, snapshot_key, state_key
from pipeline.tools.docstrings import attribute_docstrings
from pipeline.tools.stream.schemas import Schema, all_schemas, schemas_of

MARKER: Final = (
    "<!-- From here on made by python -m pipeline.tools.stream.reference docs/records.md schemas -->"
)
"""What is above in the document is written by hand."""
DAY_MS: Final = 86_400_000


class Kind(NamedTuple):
    """What the reference says of a kind of records, beside its schema."""

    title: str
    schema: str
    """The name of its schema."""
    topic: str
    key: str
    headers: str = "none"
    time: str = "the event's"
    """The timestamp that Kafka has of it."""
    internal: bool = False
    """Whether only workers and commands read it: its fields are in the schema alone."""


_TOPICS: Final = Topics(requests_labels=True)
_WRITTEN: Final = "when it was written"
_STATE_KEY: Final = state_key(0).replace("0", "PARTITION")
_CHUNK_KEY: Final = "PARTITION" + snapshot_key(0, 0, 0)[1:].replace("0/0", "SLOT/NUMBER")
KINDS: Final = (
    Kind(
        "Interactions",
        "interaction",
        _TOPICS.interactions,
        "the user's id as text",
        f"any; `{REDRIVEN_HEADER}` where a [redrive](inspecting.md#send-dead-letters-again) sent it again",
        "any",
    ),
    Kind(
        "Labels",
        "watch-label",
        _TOPICS.labels,
        "the user's id as text",
        f"any; `{REDRIVEN_HEADER}` as above",
        "any",
    ),
    Kind("Predictions", "prediction", _TOPICS.predictions, "the user's id as text"),
    Kind("Outcomes", "outcome", _TOPICS.outcomes, "the user's id as text"),
    Kind(
        "Dead letters",
        "dead-letter-headers",
        _TOPICS.dead_letters,
        "the message's, as it came",
        f"the message's, and behind them `{ERROR_HEADERS}*`",
        time=_WRITTEN,
    ),
    Kind("Label requests", "label-request", _TOPICS.label_requests, "the user's id as text"),
    Kind(
        "Shares",
        "share",
        _TOPICS.shared,
        "the partition's number as text",
        time=_WRITTEN,
        internal=True,
    ),
    Kind(
        "State records",
        "state",
        _TOPICS.checkpoints,
        f"`{_STATE_KEY}`",
        f"`{MAC_HEADER}` with [`checkpoint.key`](recovery.md#sign-checkpoints)",
        time=_WRITTEN,
        internal=True,
    ),
)


def tables() -> str:
    """Return the part of `docs/records.md` from `MARKER` on."""
    schemas = all_schemas()
    lines = [MARKER, "\n\n## Topics\n\n"]
    lines += [
        "| topic | records | key | headers | timestamp | cleanup | retention |\n",
        f"|{'---|' * 7}\n",
    ]
    lines += [_topic_row(kind) for kind in KINDS]
    lines.append(_topic_row(KINDS[-1]._replace(title="Snapshots", key=f"`{_CHUNK_KEY}`", headers="none")))
    prediction = schemas["prediction"]["properties"]
    for kind in KINDS:
        known = prediction if kind.schema in {"outcome", "label-request"} else {}
        lines += ["\n## ", kind.title, "\n\n", *_section(kind, schemas[kind.schema], known)]
    lines += _slates(prediction)
    lines += ["\n## Snapshots\n\nThe tensor `plain` has the JSON of an object:\n\n", *_fields(_scalars(), {})]
    return "".join(lines)


def _slates(prediction: Schema) -> Iterator[str]:
    """Yield the section on the predictions of KuaiRec's stream, were its interactions slates."""
    items = {"items": "/items", "item_fields": ["video_id", "video_duration"]}
    definition = KUAIREC.model_dump() | {"interactions": KUAIREC.interactions.model_dump() | items}
    schema = schemas_of(Stream.model_validate(definition))["prediction"]
    yield f"\n## Predictions of slates\n\n{schema['description']} Where interactions are "
    yield "[slates](streams.md#slates), such as lists of videos, a prediction is this. An outcome is of one "
    yield "item, and has the item's `position`, from 0, behind `model_version`. A label request has it "
    yield "behind `prediction_sequence`.\n\n"
    yield from _fields(schema, prediction)
    for part, fields in schema["$defs"].items():
        yield f"\n### {part}\n\n{fields['description']}\n\n"
        yield from _fields(fields, prediction)


def _topic_row(kind: Kind) -> str:
    settings = _TOPICS.settings(kind.topic)
    cleanup = settings["cleanup.policy"]
    retention = (
        "the last record of each key" if cleanup == "compact" else _days(int(settings["retention.ms"]))
    )
    link = f"[{kind.title}](#{kind.title.lower().replace(' ', '-')})"
    cells = (f"`{kind.topic}`", link, kind.key, kind.headers, kind.time, cleanup, retention)
    return f"| {' | '.join(cells)} |\n"


def _days(milliseconds: int) -> str:
    return "for ever" if milliseconds < 0 else f"{milliseconds // DAY_MS} days"


def _section(kind: Kind, schema: Schema, known: Schema) -> Iterator[str]:
    name = f"{kind.schema}.schema.json"
    if kind.internal:
        yield f"{schema['description']} `schemas/{name}` describes the fields.\n"
    else:
        yield f"{schema['description']} The schema is `schemas/{name}`.\n\n"
        yield from _fields(schema, known)
    if kind.schema == "prediction":
        names = [feature["title"] for feature in schema["properties"]["features"]["prefixItems"]]
        yield f"\nThe features are {_listed(names)}.\n"
    counters = schema["properties"].get("counters", {})
    if "properties" in counters:
        yield "\n### Counters\n\n"
        yield from _fields(counters, {})


def _fields(schema: Schema, known: Schema) -> Iterator[str]:
    """Yield the table of a schema's fields, and before it the names of those that another table has."""
    fields = schema["properties"]
    if repeated := [name for name, field in fields.items() if known.get(name) == field]:
        yield f"As in [predictions](#predictions): {_listed(repeated)}.\n\n"
    yield "| field | type | meaning |\n|---|---|---|\n"
    for name in [each for each in fields if each not in repeated]:
        optional = "" if name in schema["required"] else ", optional"
        text = fields[name]["description"].replace("|", "\\|")
        yield f"| `{name}` | {type_text(fields[name])}{optional} | {text} |\n"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _scalars() -> Schema:
    _, components = msgspec.json.schema_components([SnapshotScalars])
    schema: Schema = components[SnapshotScalars.__name__]
    texts = attribute_docstrings(SnapshotScalars)
    attributes = {each.encode_name: each.name for each in msgspec.structs.fields(SnapshotScalars)}
    for name, field in schema["properties"].items():
        field["description"] = texts[attributes[name]]
    schema["required"] = [name for name in schema["properties"] if name != "challengers"]
    return schema


def _bare(kind: Any) -> Schema:
    schema: Schema = msgspec.json.schema(kind)
    return schema


_NAMED: Final = (
    (_bare(Id), "id"),
    (_bare(IdPair), "two ids"),
    (_bare(Timestamp), "time"),
    (_bare(Count), "count"),
)
"""Types with a name of their own."""


def type_text(schema: Schema) -> str:
    """Return a field's type in words.

    Parameters
    ----------
    schema
        The field's schema.

    Returns
    -------
    str
        Its type.

    Examples
    --------
    >>> type_text({"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "null"}]})
    'number from 0 to 1, or null'
    >>> type_text({"type": "array", "items": {"$ref": "#/$defs/Share"}})
    'list of Share'
    """
    plain = {name: value for name, value in schema.items() if name not in {"description", "title"}}
    for known, name in _NAMED:
        if plain == known:
            return name
    if "$ref" in plain:
        name = plain["$ref"].rpartition("/")[2]
        return str(name)
    if "enum" in plain:
        return ", ".join(f"`{value}`" for value in plain["enum"])
    if "const" in plain:
        return f"`{plain['const']}`"
    if "anyOf" in plain:
        kinds = [type_text(kind) for kind in plain["anyOf"] if kind != {"type": "null"}]
        return " or ".join(kinds) + (", or null" if len(kinds) < len(plain["anyOf"]) else "")
    return _container_text(plain) or _scalar_text(plain)


def _container_text(schema: Schema) -> str | None:
    if schema["type"] == "array":
        if "prefixItems" in schema:
            return f"list of {len(schema['prefixItems'])} values"
        return f"list of {type_text(schema['items'])}"
    if schema["type"] == "object":
        values = schema.get("additionalProperties")
        return f"object of {type_text(values)}" if isinstance(values, dict) else "object"
    return None


def _scalar_text(schema: Schema) -> str:
    words = {"integer": "integer", "number": "number", "boolean": "true or false", "string": "text"}
    text = words[schema["type"]]
    if schema.get("contentEncoding"):
        text += f" in {schema['contentEncoding']}"
    if "minimum" in schema:
        text += f" from {schema['minimum']:,}"
    if "maximum" in schema:
        text += f" to {schema['maximum']:,.0f}"
    return text


def schema_files() -> dict[str, str]:
    """Return the text of each file in `schemas/` by its name."""
    return {
        f"{name}.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in all_schemas().items()
    }


def main(document: Path, folder: Path) -> None:
    """Replace the tables of the document at a path, and the schemas in a folder."""
    text = document.read_text()
    document.write_text(text[: text.index(MARKER)] + tables())
    for name, schema in schema_files().items():
        (folder / name).write_text(schema)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
