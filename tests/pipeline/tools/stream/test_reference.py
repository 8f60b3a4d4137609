"""`docs/records.md` and `schemas/` against the types that they are made of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipeline.config.feature_layout import FeatureLayout
from pipeline.config.stream import KUAIREC, Stream
from pipeline.config.target_settings import RegressionSettings
from pipeline.config.topics import Topics
from pipeline.kafka.committed import METADATA_PREFIX
from pipeline.model.snapshot import pack, parse
from pipeline.records.fields import Count, Id, Timestamp
from pipeline.records.output_types import OutputTypes
from pipeline.recovery.checkpoint_writer import CHUNK
from pipeline.tools.stream.reference import KINDS, MARKER, schema_files, tables, type_text
from pipeline.tools.stream.schemas import schemas_of
from tests.pipeline.features.test_declared import DECLARED, stream_of
from tests.support.builders import CHALLENGERS, WEIGHTED, new_model

ROOT = Path(__file__).parents[4]
TEXT = (ROOT / "docs" / "records.md").read_text()
COMMAND = "python -m pipeline.tools.stream.reference docs/records.md schemas"
STREAMS = {name: stream_of(name) for name in DECLARED} | {"weighted": WEIGHTED, "kuairec": KUAIREC}


def test_the_document_is_what_the_code_makes() -> None:
    assert TEXT[TEXT.index(MARKER) :] == tables(), COMMAND


@pytest.mark.parametrize("name", schema_files())
def test_the_schemas_are_what_the_code_makes(name: str) -> None:
    assert (ROOT / "schemas" / name).read_text() == schema_files()[name], COMMAND


def test_every_topic_is_there() -> None:
    assert {kind.topic for kind in KINDS} == set(Topics(requests_labels=True).all)


def test_types_are_named() -> None:
    kinds: list[tuple[Any, str]] = [
        (Id, "id"),
        (Timestamp | None, "time, or null"),
        (list[Count], "list of count"),
        (dict[str, float], "object of number"),
        (bytes | None, "text in base64, or null"),
        (int | str, "integer or text"),
        (bool, "true or false"),
    ]
    for kind, text in kinds:
        assert type_text(msgspec.json.schema(kind)) == text


def named_as_documented(kind: str, stream: Stream) -> list[str]:
    """The fields of a record of KuaiRec's stream, by the names that the document says another stream has."""
    fields: list[str] = []
    for name in schemas_of(KUAIREC)[kind]["properties"]:
        match name:
            case "user_id":
                fields += stream.entities
            case "video_id":
                pass
            case "watch_ratio":
                fields += [stream.target.name, *(["weight"] if stream.labels.weighted else [])]
            case "former":
                fields += [name, *(["former_weight"] if stream.labels.weighted else [])]
            case "features":
                fields += [name, *(["tables"] if stream.tables else [])]
            case _:
                fields.append(name)
    return fields


@pytest.mark.parametrize("name", STREAMS)
def test_fields_of_other_streams_have_the_names_that_the_document_says(name: str) -> None:
    stream = STREAMS[name]
    schemas = schemas_of(stream)
    for kind in ("prediction", "outcome", "label-request"):
        assert list(schemas[kind]["properties"]) == named_as_documented(kind, stream)
    share, base = schemas["share"]["properties"], schemas_of(KUAIREC)["share"]["properties"]
    layout = FeatureLayout.of(stream)
    lists = [layout.tables[number].name for number in layout.shared]
    assert [field for field in share if field in lists] == lists
    assert [field for field in share if field not in lists] == [field for field in base if field != "videos"]
    if isinstance(stream.target, RegressionSettings):
        for field in ("predicted", "label"):
            assert "number" in type_text(schemas["outcome"]["properties"][field])


@pytest.mark.parametrize("name", STREAMS)
def test_every_field_of_every_stream_is_described(name: str) -> None:
    for schema in schemas_of(STREAMS[name]).values():
        for part in (schema, *schema.get("$defs", {}).values()):
            fields = [*part.get("properties", {}).values(), *part.get("prefixItems", ())]
            assert all(field["description"] for field in fields)


def test_the_tensors_of_a_snapshot_are_listed() -> None:
    tensors, _ = parse(pack(new_model(challengers=CHALLENGERS)))
    section = TEXT[TEXT.index("| tensor |") : TEXT.index(MARKER)]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    patterns = {
        re.escape(name.strip("`")).replace(r"\*", ".+").replace("NAME", r"[\w-]+").replace("TABLE", r"\w+")
        for cell in cells
        for name in cell.split(", ")
    }
    assert [each for each in tensors if not any(re.fullmatch(pattern, each) for pattern in patterns)] == []
    assert [pattern for pattern in patterns if not any(re.fullmatch(pattern, each) for each in tensors)] == []


def test_what_is_said_of_offsets_and_chunks_is_so() -> None:
    assert f"`{METADATA_PREFIX}`" in TEXT
    assert f"{CHUNK:,} bytes" in TEXT


def test_types_of_a_stream_are_described_as_those_that_they_come_from() -> None:
    schema = schemas_of(WEIGHTED)["outcome"]
    assert schema["properties"]["weight"]["description"]
    assert OutputTypes.of(WEIGHTED).outcome.__name__ == "Outcome"
    assert schema["description"] == schemas_of(KUAIREC)["outcome"]["description"]
