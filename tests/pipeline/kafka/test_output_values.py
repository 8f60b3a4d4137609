"""Values of outputs in Avro: what they are written as, and what becomes of those that no worker wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.config.stream import KUAIREC
from pipeline.config.topics import Topics
from pipeline.errors import ConfigError, RegistryError, StateError
from pipeline.kafka import registry as registry_module
from pipeline.kafka.output_values import PLAIN, OutputValues, register_outputs
from pipeline.kafka.registry import registry_of
from pipeline.log.decoding import decode_record, decode_records
from pipeline.records.encoding import encode
from pipeline.records.output_types import KUAIREC_TYPES
from pipeline.records.outputs import LabelRequest, Prediction
from pipeline.records.schemas import SchemaUnavailableError, WriterSchema
from tests.support.fake_registry import FakeRegistry, fake_registry

pytest.importorskip("fastavro", reason="the extra `registry` is not installed")
pytest.importorskip("authlib", reason="as above")

PREDICTION = Prediction("e", 7, 3, 5, 0.5, None, True, [0.25] * 10, model_version=0, sequence=9)
AVRO = KUAIREC.model_copy(update={"outputs": KUAIREC.outputs.model_copy(update={"format": "avro"})})


class Sent:
    """A message as a client hands it over."""

    def __init__(self, value: bytes | None) -> None:
        self._value = value

    def topic(self) -> str:
        return "p-predictions"

    def partition(self) -> int:
        return 1

    def offset(self) -> int:
        return 44

    def key(self) -> bytes:
        return b"7"

    def value(self) -> bytes | None:
        return self._value

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, 5


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRegistry]:
    monkeypatch.setattr(registry_module, "PAUSE", 0.0)
    with fake_registry() as found:
        yield found


def topics(server: FakeRegistry, **changes: Any) -> Topics:
    return Topics("p-", stream=AVRO, registry=server.settings(), **changes)


def written(server: FakeRegistry) -> bytes:
    """A prediction as a worker writes it."""
    own = topics(server)
    encoders = register_outputs(own, registry_of(own.registry))
    [value] = encoders[own.predictions]([encode(PREDICTION)])
    return value


def test_a_topic_s_schema_is_registered_under_its_name(server: FakeRegistry) -> None:
    own = topics(server, requests_labels=True)
    encoders = register_outputs(own, registry_of(own.registry))
    assert [*encoders] == ["p-predictions", "p-outcomes", "p-label-requests"]
    request = encode(LabelRequest("e", 7, 3, 5, 0.5, prediction_sequence=9, sequence=4))
    for topic, text in ((own.predictions, encode(PREDICTION)), (own.label_requests, request)):
        [value] = encoders[topic]([text])
        assert value[:5] == b"\0" + server.latest(f"{topic}-value").to_bytes(4)
        assert OutputValues(own).json(topic, value) == text
    assert register_outputs(topics(server), registry_of(own.registry)).keys() == {
        own.predictions,
        own.outcomes,
    }


def test_plain_json_is_left_as_it_is(server: FakeRegistry) -> None:
    messages = [Sent(b"{}")]
    assert PLAIN.converted("p-predictions", messages) is messages
    assert OutputValues(topics(server)).converted("p-checkpoints", messages) is messages
    assert register_outputs(Topics("p-"), registry_of(server.settings())) == {}


def test_a_message_has_the_json_of_its_value(server: FakeRegistry) -> None:
    [message] = OutputValues(topics(server)).converted("p-predictions", [Sent(written(server))])
    assert message.value() == message.value() == encode(PREDICTION)
    assert message.fault is None
    assert (message.topic(), message.partition(), message.offset()) == ("p-predictions", 1, 44)
    assert (message.key(), message.headers(), message.timestamp()) == (b"7", None, (1, 5))
    assert decode_records(KUAIREC_TYPES.predictions, [message]) == [PREDICTION]


def _other(server: FakeRegistry, value: bytes) -> bytes:
    """The value under the id of a schema of another kind."""
    return b"\0" + server.add({"type": "object"}, "JSON").to_bytes(4) + value[5:]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda _, value: value[:-1], "the value is cut off"),
        (lambda _, value: value + b"x", "1 bytes are left after the value's last field"),
        (lambda _, value: b"\1" + value[1:], "not with the magic byte 0"),
        (lambda _, value: b"\0\0\0\0\x63" + value[5:], "schema 99 is not in the registry"),
        (lambda _, value: b"\0\xff\xff\xff\xff" + value[5:], "no id is above"),
        (_other, "it is of JSON, not of AVRO"),
        (lambda *_: encode(PREDICTION), "not with the magic byte 0"),
        (lambda *_: b"", "not with the magic byte 0"),
        (lambda *_: None, "not with the magic byte 0"),
    ],
)
def test_what_no_worker_wrote_is_named(server: FakeRegistry, spoil: Any, reason: str) -> None:
    sent = Sent(spoil(server, written(server)))
    [message] = OutputValues(topics(server)).converted("p-predictions", [sent])
    with pytest.raises(StateError, match=f"partition 1, offset 44: no worker wrote .*{reason}"):
        decode_record(KUAIREC_TYPES.predictions, message)
    assert message.value() in (sent.value(), b"")
    assert reason in (message.fault or "")


def test_while_the_registry_is_away_nothing_is_said_of_a_record(server: FakeRegistry) -> None:
    value, own = written(server), topics(server)

    class Away:
        def get(self, schema_id: int) -> WriterSchema:
            raise SchemaUnavailableError(schema_id)

    [message] = OutputValues(own, Away()).converted("p-predictions", [Sent(value)])
    with pytest.raises(SchemaUnavailableError):
        message.value()
    registry_of.__globals__["_registry"].cache_clear()  # as another process
    server.status = 503
    [message] = OutputValues(own).converted("p-predictions", [Sent(value)])
    with pytest.raises(RegistryError, match="does not answer"):
        message.value()
    server.status = None
    assert message.value() == encode(PREDICTION)


def test_without_the_extra_the_error_names_it(server: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.extras.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install .*forks-stream\[registry\]"):
        OutputValues(topics(server))


def test_without_an_address_the_error_names_the_setting() -> None:
    with pytest.raises(ConfigError, match=r"registry\.url is not set"):
        OutputValues(Topics("p-", stream=AVRO))


def test_the_schema_is_one_that_readers_can_read(server: FakeRegistry) -> None:
    written(server)
    own = topics(server)
    found = registry_of(own.registry).latest("p-predictions-value")
    assert found is not None
    schema = json.loads(found.schema.text)
    assert (schema["name"], schema["namespace"]) == ("Prediction", "forks.kuairec")
