"""Messages in Avro, whose schemas are in a real registry, and the settings of a pipeline that has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from pipeline.config.settings import Registry
from pipeline.config.stream import KUAIREC
from pipeline.config.topics import Topics
from pipeline.kafka.registry import registry_of
from pipeline.records.schemas import WriterSchema
from tests.chaos.world import Kind
from tests.support.apicurio import Apicurio, apicurio

IDS: Final = [{"name": name, "type": "long"} for name in ("event_id", "user_id", "video_id")]
TIME: Final = {"name": "timestamp", "type": {"type": "long", "logicalType": "timestamp-millis"}}
WORDS: Final = {"name": "timestamp", "type": "string"}
NUMBERS: Final = {
    False: [{"name": "video_duration", "type": "double"}],
    True: [{"name": name, "type": "double"} for name in ("play_duration", "watch_ratio")],
}
TITLE: Final = {"name": "title", "type": "string", "default": ""}
"""A field of the newer of two schemas, which nothing reads."""
NEWER: Final = 3
"""Every so manieth event is written with the newer schema."""


class AvroMessages:
    """Writes messages in Avro: good ones in two schemas of each input, and invalid ones in a third.

    Parameters
    ----------
    url
        Address of the registry, where the schemas are registered.
    """

    def __init__(self, url: str) -> None:
        from fastavro import parse_schema, schemaless_writer  # noqa: PLC0415 - of the extra `registry`

        self._write = schemaless_writer
        registry = registry_of(Registry(url=url))
        self._ids: dict[tuple[bool, str], int] = {}
        self._schemas: dict[tuple[bool, str], Any] = {}
        for is_label, numbers in NUMBERS.items():
            name = "Label" if is_label else "Interaction"
            versions = {
                "good": [*IDS, TIME, *numbers],
                "newer": [IDS[0], TITLE, *IDS[1:], TIME, *numbers],
                "invalid": [*IDS, WORDS, *numbers],
            }
            for version, fields in versions.items():
                schema = {"type": "record", "name": f"{name}_{version}", "fields": fields}
                text = json.dumps(schema)
                subject = f"chaos-{name}-{version}"
                self._ids[is_label, version] = registry.register(subject, WriterSchema("AVRO", text))
                self._schemas[is_label, version] = parse_schema(schema)

    def __call__(self, is_label: bool, kind: Kind, record: dict[str, Any]) -> bytes:
        """Return a message's value."""
        version = "newer" if record["event_id"] % NEWER == 0 else "good"
        if kind is Kind.INVALID:
            version = "invalid"
        file = BytesIO()
        file.write(b"\0" + self._ids[is_label, version].to_bytes(4))
        self._write(file, self._schemas[is_label, version], record | {"title": "T"})
        return file.getvalue()


@contextmanager
def registry_in(folder: Path) -> Iterator[Apicurio]:
    """Run a registry inside the block, whose data are in a folder of this one."""
    own = folder / "registry"
    own.mkdir()
    with apicurio(own) as found:
        yield found


def topics(prefix: str, url: str) -> Topics:
    """Return the topics of a pipeline of KuaiRec's stream with inputs and outputs in Avro."""
    avro = {"format": "avro"}
    parts = ("interactions", "labels", "outputs")
    stream = KUAIREC.model_copy(
        update={name: getattr(KUAIREC, name).model_copy(update=avro) for name in parts}
    )
    return Topics(prefix, stream=stream, registry=Registry(url=url))


def settings(url: str) -> dict[str, str]:
    """Return the settings of such a pipeline, by variable."""
    stream = topics("", url).stream.model_dump_json()
    return {"FORKS_STREAM": stream, "FORKS_REGISTRY__URL": url, "FORKS_REGISTRY__TIMEOUT": "2s"}
