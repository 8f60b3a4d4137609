"""Slates in Avro and Protobuf, and outputs in Avro, through real workers that are killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.records.names import EXCEPTION_HEADER
from tests.integration.harness import Message
from tests.integration.test_slates import DEFINITION, check_run, outputs, pipeline_of_slates, shelves
from tests.integration.test_stream import command
from tests.support.fake_registry import fake_registry
from tests.support.schemas import avro, framed, proto_field, proto_schema

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto  # isort: skip # of the extra
from google.protobuf.descriptor_pool import DescriptorPool  # isort: skip # as above
from google.protobuf.json_format import ParseDict  # isort: skip # as above
from google.protobuf.message_factory import GetMessageClass  # isort: skip # as above

PAGE: dict[str, Any] = {
    "type": "record",
    "name": "Page",
    "fields": [
        {"name": "shelf", "type": "string"},
        {"name": "user", "type": "string"},
        {"name": "at", "type": "long"},
        {"name": "phone", "type": "boolean"},
        {
            "name": "page",
            "type": {
                "type": "record",
                "name": "Shown",
                "fields": [
                    {
                        "name": "shown",
                        "type": {
                            "type": "array",
                            "items": {
                                "type": "record",
                                "name": "Item",
                                "fields": [
                                    {"name": "product", "type": "long"},
                                    {"name": "price", "type": "double"},
                                ],
                            },
                        },
                    }
                ],
            },
        },
    ],
}
"""The schema of slates in Avro."""


def page_file() -> FileDescriptorProto:
    """Return the schema of slates in Protobuf."""
    file = FileDescriptorProto(name="page.proto", package="shelf", syntax="proto3")
    page = file.message_type.add(name="Page")
    item = file.message_type.add(name="Item")
    item.field.append(proto_field("product", 1, "int64"))
    item.field.append(proto_field("price", 2, "double"))
    repeated = FieldDescriptorProto.LABEL_REPEATED
    shown = page.nested_type.add(name="Shown")
    shown.field.append(proto_field("shown", 1, "message", ".shelf.Item", label=repeated))
    page.field.append(proto_field("shelf", 1, "string"))
    page.field.append(proto_field("user", 2, "string"))
    page.field.append(proto_field("at", 3, "int64"))
    page.field.append(proto_field("phone", 4, "bool"))
    page.field.append(proto_field("page", 5, "message", ".shelf.Page.Shown"))
    return file


PROTOBUF = proto_schema(page_file())


def in_protobuf(value: dict[str, Any], schema_id: int) -> bytes:
    """Return a message in Protobuf."""
    pool = DescriptorPool()
    pool.AddSerializedFile(page_file().SerializeToString())
    message = GetMessageClass(pool.FindMessageTypeByName("shelf.Page"))()
    ParseDict(value, message)
    return framed(schema_id, b"\0" + message.SerializeToString())


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["avro", "protobuf"])
def test_slates_with_a_schema_are_learned_over_kills(
    bootstrap: str, topic_prefix: str, tmp_path: Path, format_: str
) -> None:
    with fake_registry() as registry:
        frame: Callable[[dict[str, Any], int], bytes]
        if format_ == "avro":
            schema_id, frame = registry.add(PAGE), partial(avro, PAGE)
        else:
            schema_id, frame = registry.add("", "PROTOBUF", serialized=PROTOBUF.text), in_protobuf
        definition = DEFINITION.replace('topic = "shown"', f'topic = "shown"\nformat = "{format_}"')
        if format_ == "avro":
            definition += '[stream.outputs]\nformat = "avro"\n[labels]\npolicy = "random"\nrate = 0.5\n'
        text = f'{definition}[registry]\nurl = "{registry.url}"\n'
        pipeline = pipeline_of_slates(bootstrap, topic_prefix, tmp_path, text)
        sent, shown = shelves(pipeline.topics), pipeline.topics.interactions
        pipeline.produce(
            each._replace(value=frame(json.loads(each.value or b""), schema_id))
            if each.topic == shown
            else each
            for each in sent.messages
        )
        assert "shelves: everything fits" in command(pipeline, "stream", "check", "--messages", "10000")
        pipeline.produce([Message(shown, b"u1", framed(schema_id, b"\0\xff"))])
        check_run(pipeline, sent, kills=(200, 900))
        [letter] = pipeline.read(pipeline.topics.dead_letters)
        assert dict(letter.headers)[EXCEPTION_HEADER] == b"undecodable"
        group = ("--group", pipeline.kafka.group)
        assert "no difference" in command(pipeline, "audit", *group)
        assert "identical" in command(pipeline, "rebuild", *group)
        assert "last1" in command(pipeline, "inspect", "interactions", "--detail")
        first = pipeline.read(pipeline.topics.predictions)[0].value or b""
        assert first.startswith(b"\0" if format_ == "avro" else b"{")
        items = sum(map(len, sent.items.values()))
        assert json.loads(command(pipeline, "report", "--json"))["items"] == items
        folder = pipeline.folder / "exported"
        command(pipeline, "export", "predictions", "--to", str(folder))
        rows = pl.read_parquet(folder / "**" / "*.parquet")
        assert rows.height == items
        if format_ == "avro":
            requests = outputs(pipeline, pipeline.topics.label_requests)
            asked = sorted(rows.filter(pl.col("asked")).select("sequence", "position").iter_rows())
            assert sorted((each["prediction_sequence"], each["position"]) for each in requests) == asked
            assert 0.4 * items < len(requests) < 0.6 * items
