"""What a registry answers, and what is no answer."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator

import pytest

from pipeline.config.settings import Registry
from pipeline.config.topics import Topics
from pipeline.errors import ConfigError, RegistryError, SchemaRefusedError
from pipeline.kafka import registry as module
from pipeline.kafka.registry import MAX_KEPT, SchemaRegistry, asked, decoders_of, registry_of
from pipeline.records.schemas import UnknownSchemaError, WriterSchema
from tests.support.fake_registry import FakeRegistry, fake_registry
from tests.support.schemas import ORDER, avro, order, order_file, stream_of


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with fake_registry() as found:
        yield found


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.0)


def test_a_schema_is_asked_for_once(server: FakeRegistry) -> None:
    number, client = server.add(ORDER), SchemaRegistry(server.settings())
    assert client.get(number) == client.get(number)
    assert client.get(number).kind == "AVRO"
    assert len(server.requests) == 1


def test_that_there_is_no_schema_is_an_answer_which_is_believed_for_a_while(
    server: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = SchemaRegistry(server.settings())
    for _ in range(3):
        with pytest.raises(UnknownSchemaError, match="schema 1 is not in the registry"):
            client.get(1)
    assert len(server.requests) == 1
    monkeypatch.setattr(module, "RECHECK", -1.0)
    client.keep(1, None)
    server.add(ORDER)
    assert client.get(1).kind == "AVRO"


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 408, 429, 500, 503])
def test_any_other_answer_says_nothing_about_the_message(server: FakeRegistry, status: int) -> None:
    number, client = server.add(ORDER), SchemaRegistry(server.settings())
    server.status = status
    with pytest.raises(RegistryError, match=f"{server.url} does not answer: HTTP {status}"):
        client.fetch(number)
    server.status = None
    assert client.get(number).kind == "AVRO"


def test_what_is_no_registry_says_nothing_about_the_message(server: FakeRegistry) -> None:
    client = SchemaRegistry(server.settings(url=f"{server.url}/nowhere"))
    with pytest.raises(RegistryError, match="HTTP 404"):
        client.fetch(server.add(ORDER))
    server.status = 200
    with pytest.raises(RegistryError, match="does not answer: JSONDecodeError"):
        SchemaRegistry(server.settings()).fetch(1)


def test_a_registry_that_is_away_or_slow_says_nothing_about_the_message(server: FakeRegistry) -> None:
    slow = SchemaRegistry(server.settings(), timeout=0.1)
    server.delay = 0.5
    with pytest.raises(RegistryError, match="does not answer: ReadTimeout"):
        slow.fetch(1)
    refused = SchemaRegistry(Registry(url="http://127.0.0.1:1"))
    with pytest.raises(RegistryError, match=r"http://127\.0\.0\.1:1 does not answer: ConnectError"):
        refused.get(1)


def test_commands_ask_again_before_they_give_up(server: FakeRegistry) -> None:
    client = SchemaRegistry(server.settings())
    server.status = 503
    with pytest.raises(RegistryError):
        client.get(1)
    assert len(server.requests) == module.ATTEMPTS


def test_another_address_is_asked_where_one_is_away(server: FakeRegistry) -> None:
    number = server.add(ORDER)
    client = SchemaRegistry(Registry(url=f"http://127.0.0.1:1,{server.url}"))
    assert client.get(number).kind == "AVRO"


def test_what_a_schema_refers_to_comes_before_it(server: FakeRegistry) -> None:
    first = {"type": "record", "name": "A", "fields": []}
    server.add(first, subject="a")
    server.add({"type": "record", "name": "B", "fields": []}, subject="b", references=[
        {"name": "A", "subject": "a", "version": 1}])  # fmt: skip
    number = server.add(ORDER, references=[
        {"name": "B", "subject": "b", "version": 1}, {"name": "A", "subject": "a", "version": 1}
    ])  # fmt: skip
    found = SchemaRegistry(server.settings()).get(number)
    assert [name for name, _ in found.references] == ["A", "B"]
    missing = server.add(ORDER, references=[{"name": "C", "subject": "c", "version": 1}])
    with pytest.raises(RegistryError, match="HTTP 404"):
        SchemaRegistry(server.settings()).fetch(missing)


def test_a_schema_with_too_many_references_is_refused(server: FakeRegistry) -> None:
    for number in range(200):
        server.add("{}", subject=f"s{number}")
    references = [{"name": f"r{number}", "subject": f"s{number}", "version": 1} for number in range(200)]
    found = SchemaRegistry(server.settings()).get(server.add(ORDER, references=references))
    assert found.refusal == "it refers to more than 100 schemas"


def test_protobuf_comes_as_a_descriptor_or_not_at_all(server: FakeRegistry) -> None:
    descriptor = b64encode(order_file().SerializeToString()).decode()
    text = 'syntax = "proto3";'
    number = server.add(text, "PROTOBUF", serialized=descriptor)
    assert SchemaRegistry(server.settings()).get(number) == WriterSchema("PROTOBUF", descriptor)
    with pytest.raises(RegistryError, match="gives no descriptors of Protobuf schemas"):
        SchemaRegistry(server.settings()).fetch(server.add(text, "PROTOBUF"))


def test_credentials_are_sent_and_not_shown(server: FakeRegistry) -> None:
    settings = server.settings(client={"basic.auth.user.info": "me:hunter2"})
    client = SchemaRegistry(settings)
    client.get(server.add(ORDER))
    assert server.headers[-1]["Authorization"].startswith("Basic ")
    server.status = 401
    with pytest.raises(RegistryError) as caught:
        client.fetch(2)
    assert "hunter2" not in str(caught.value) + repr(settings)


@pytest.mark.parametrize(
    ("client", "reason"),
    [
        ({"basic.auth.user.info": "hunter2"}, "basic.auth.user.info must be in the form"),
        ({"ssl.certificate.locatio": "x"}, "Unrecognized properties: ssl.certificate.locatio"),
        ({"ssl.key.location": "x"}, "ssl.certificate.location required"),
    ],
)
def test_settings_that_the_client_refuses_are_named(client: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        SchemaRegistry(Registry.model_validate({"url": "http://127.0.0.1:1", "client": client}))
    assert "hunter2" not in str(caught.value)


def test_what_is_kept_is_bounded(server: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    client = SchemaRegistry(server.settings())
    for number in range(2 * MAX_KEPT):
        client.keep(number, WriterSchema("AVRO", "x"))
        client.keep(-number - 1, None)
    assert client.kept(0) is None
    assert client.kept(2 * MAX_KEPT - 1) is not None
    assert len(client._kept) == len(client._unknown) == MAX_KEPT
    monkeypatch.setattr(module, "MAX_KEPT_SIZE", 10)
    client.keep(9_999, WriterSchema("AVRO", "x" * 9))
    assert len(client._kept) == 2
    client.keep(10_000, WriterSchema("AVRO", "x" * 99))
    assert list(client._kept) == [10_000]


def test_the_client_keeps_nothing_beside(server: FakeRegistry) -> None:
    client = SchemaRegistry(server.settings())
    for number in range(5):
        client.get(server.add({**ORDER, "name": f"Order{number}"}))
    assert sum(len(each) for each in client._client._cache.schema_id_index.values()) <= 1


def test_decoders_are_those_of_the_registry_that_is_set(server: FakeRegistry) -> None:
    number = server.add(ORDER)
    topics = Topics(stream=stream_of("avro"), registry=server.settings())
    record = decoders_of(topics).interactions.decode(avro(ORDER, order(), number))
    assert record.event_id == "o1"
    assert registry_of(server.settings()) is registry_of(server.settings())
    assert registry_of(server.settings()) is not registry_of(
        server.settings(client={"basic.auth.user.info": "me:x"})
    )
    with pytest.raises(ConfigError, match=r"registry\.url is not set"):
        decoders_of(Topics(stream=stream_of("avro")))
    assert decoders_of(Topics()).interactions.ready is None


def test_the_latest_schema_of_a_subject_is_found(server: FakeRegistry) -> None:
    client = SchemaRegistry(server.settings())
    assert client.latest("orders-value") is None
    first = WriterSchema("AVRO", '"string"')
    number = client.register("orders-value", first)
    assert client.latest("orders-value") == (number, first)
    newer = client.register("orders-value", WriterSchema("AVRO", '"long"'))
    found = client.latest("orders-value")
    assert found is not None
    assert found.schema_id == newer
    server.status = 503
    with pytest.raises(RegistryError, match="does not answer: HTTP 503"):
        client.latest("orders-value")


def test_what_was_registered_is_known_without_asking(server: FakeRegistry) -> None:
    client, schema = SchemaRegistry(server.settings()), WriterSchema("AVRO", '"string"')
    number = client.register("orders-value", schema)
    assert client.register("orders-value", schema) == number
    server.status = 503
    assert client.get(number) == schema


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (401, "check the credentials"),
        (403, "let the user"),
        (409, "set the subject's compatibility to NONE"),
        (422, "see what it says"),
    ],
)
def test_a_refusal_says_of_which_subject_where_and_what_to_do(
    server: FakeRegistry, status: int, remedy: str
) -> None:
    client = SchemaRegistry(server.settings())
    server.refusal = status, "no"
    with pytest.raises(SchemaRefusedError, match=remedy) as found:
        client.register("predictions-value", WriterSchema("AVRO", '"string"'))
    assert f"{server.url} refuses the schema of predictions-value: HTTP {status}: no" in str(found.value)
    assert found.value.exit_code == RegistryError.exit_code


@pytest.mark.parametrize("status", [400, 404, 408, 429, 500, 503])
def test_any_other_answer_is_no_refusal(server: FakeRegistry, status: int) -> None:
    client = SchemaRegistry(server.settings())
    server.status = status
    with pytest.raises(RegistryError, match=f"does not answer: HTTP {status}") as found:
        client.register("predictions-value", WriterSchema("AVRO", '"string"'))
    assert not isinstance(found.value, SchemaRefusedError)


def test_a_refusal_is_not_asked_for_again(server: FakeRegistry) -> None:
    client = SchemaRegistry(server.settings())
    server.refusal = 409, "no"
    with pytest.raises(SchemaRefusedError):
        asked(lambda: client.register("predictions-value", WriterSchema("AVRO", '"string"')))
    assert len(server.requests) == 1
