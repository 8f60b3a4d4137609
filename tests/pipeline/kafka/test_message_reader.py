"""Messages that are read in memory hold what their methods say."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from confluent_kafka import KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from pipeline.kafka.message_reader import MessageReader
from pipeline.records.inputs import KafkaMessage, RawMessage
from pipeline.records.message_texts import MessageTexts
from pipeline.records.words import SPARE

NATIVE = MessageReader()
PLAIN = MessageReader(native=False)

texts = st.none() | st.binary(max_size=40)
headers = st.none() | st.lists(st.tuples(st.text(max_size=3), texts), max_size=2)
names = st.sampled_from(["t", "topic.of-8", "eight_by", "eight_bY", "topic_of_16_signs", "topic_of_16_signS"])


@st.composite
def messages(draw: st.DrawFn) -> list[Message]:
    """Messages, most of them of one partition."""
    topic, partition = draw(names), draw(st.integers(0, 2))
    drawn = st.builds(
        # A name of its own for each, as the client makes one.
        lambda topic, partition, key, value, headers: Message(
            topic="".join([*topic]), partition=partition, key=key, value=value, headers=headers, offset=7
        ),
        st.just(topic) | names,
        st.just(partition) | st.integers(0, 2),
        texts,
        texts,
        headers,
    )
    return draw(st.lists(drawn, min_size=1, max_size=8))


def as_lists(found: MessageTexts) -> tuple[list[bytes], list[bytes], list[int]]:
    assert found.values.text[found.values.ends[-1] :].tolist() == [0] * SPARE
    assert not found.values.text.flags.writeable
    assert not found.keys.text.flags.writeable
    keys, values = (
        [bytes(each.text[begin:end]) for begin, end in zip(each.begins, each.ends, strict=True)]
        for each in (found.keys, found.values)
    )
    return keys, values, found.sizes.tolist()


def test_the_installed_client_is_known() -> None:
    assert NATIVE.native, "look at what its objects look like"
    assert not PLAIN.native


@given(messages())
def test_messages_that_are_read_in_memory_hold_what_their_methods_say(delivered: list[Message]) -> None:
    keys, values, sizes = as_lists(NATIVE.texts(delivered))
    assert keys == [message.key() or b"" for message in delivered]
    assert values == [message.value() or b"" for message in delivered]
    assert sizes == [RawMessage.of(message).size for message in delivered]
    assert (keys, values, sizes) == as_lists(PLAIN.texts(delivered))


@given(messages())
def test_messages_of_one_partition_are_known(delivered: list[Message]) -> None:
    places = {(message.topic(), message.partition()) for message in delivered}
    assert NATIVE.of_one_partition(delivered) == PLAIN.of_one_partition(delivered) == (len(places) == 1)


@pytest.mark.parametrize("reader", [NATIVE, PLAIN])
def test_an_event_is_no_message(reader: MessageReader) -> None:
    plain = Message(topic="t", partition=0, offset=1, value=b"1")
    event = Message(topic="t", partition=0, offset=1, error=KafkaError(KafkaError._PARTITION_EOF))
    assert reader.of_one_partition([plain, plain])
    assert not reader.of_one_partition([plain, event])
    assert not reader.of_one_partition([event])


class Other(Message):
    """Has the client's methods, and perhaps others."""

    def value(self) -> bytes:
        return b"other"


def deserialized() -> Message:
    """One with a value that is no text any more."""
    message = Message(topic="t", partition=0, value=b"1")
    message.set_value(bytearray(b"12"))
    return message


@pytest.mark.parametrize("other", [Other(topic="t", value=b"1"), deserialized()])
def test_other_objects_are_asked_by_their_methods(other: KafkaMessage) -> None:
    delivered: Sequence[KafkaMessage] = [Message(topic="t", partition=0, value=b"1"), other]
    assert as_lists(NATIVE.texts(delivered)) == as_lists(MessageTexts.of(delivered))
