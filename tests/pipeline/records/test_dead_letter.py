from __future__ import annotations

import hashlib

from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.records.dead_letter import (
    ADDED_BYTES,
    LEAST_ROOM,
    MAX_REASON,
    DeadLetterRecord,
    Original,
    dead_letter_record,
    message_headers,
    read_dead_letter,
    record_size,
    redriven_headers,
)
from pipeline.records.inputs import Headers, RawMessage
from pipeline.records.names import LENGTH_HEADER, REDRIVEN_HEADER, SHA256_HEADER, Fault

ROOM = LEAST_ROOM
SIZES = st.integers(0, 3 * ROOM)
FORGED = [(LENGTH_HEADER, b"3"), (SHA256_HEADER, b"0" * 64)]
"""Headers with which a message passes itself off as a dead letter that is cut."""


class Written:
    """A dead letter as a client delivers it."""

    def __init__(self, record: DeadLetterRecord) -> None:
        self.record = record

    def topic(self) -> str:
        return "dead-letters"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 5

    def key(self) -> bytes | None:
        return self.record.key

    def value(self) -> bytes | None:
        return self.record.value

    def headers(self) -> Headers:
        return self.record.headers


def varint(number: int) -> int:
    """Bytes of a number as Kafka writes it: zigzag, 7 bits in each byte."""
    return max(1, -(-(2 * number).bit_length() // 7))


def batch_size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Bytes of a batch of one record, as the protocol's guide has it, with the largest of timestamps."""

    def sized(text: bytes | None) -> int:
        return 1 if text is None else varint(len(text)) + len(text)

    of_headers = sum(sized(name.encode()) + sized(text) for name, text in headers)
    body = 1 + 10 + 5 + sized(key) + sized(value) + varint(len(headers)) + of_headers
    return 61 + varint(body) + body


messages = st.builds(
    lambda key, value, name, headers: RawMessage(
        "watch-labels",
        3,
        2**40,
        None if key is None else b"k" * key,
        None if value is None else b"v" * value,
        [("né" + name, b"h" * size) for size in headers] + (FORGED if len(headers) == 1 else []),
    ),
    st.none() | SIZES,
    st.none() | SIZES,
    st.text(max_size=3),
    st.lists(SIZES, max_size=3),
)


@given(source=messages, reason=st.text(st.characters(codec="utf-8"), max_size=2 * MAX_REASON))
@example(RawMessage("t" * 249, 3, 2**40, b"k" * 2**20, b"v", [("n" * ROOM, None)]), "😀" * 10_000)
@example(RawMessage("t", 0, 0, None, b"v", [("", b"")] * ROOM), "")
def test_a_dead_letter_fits_and_has_its_message_or_says_what_is_cut(source: RawMessage, reason: str) -> None:
    record = dead_letter_record(source, Fault.INVALID, reason, ROOM)
    assert batch_size(record.key, record.value, record.headers) <= ROOM
    found = read_dead_letter(Written(record))
    assert (found.topic, found.partition, found.offset) == source[:3]
    assert found.fault == Fault.INVALID
    shown = found.reason or ""
    assert shown == reason if len(reason) <= MAX_REASON else reason.startswith(shown[:-1])
    if not record.cut:
        whole = record.key, record.value, list(message_headers(Written(record)))
        assert whole == (*source[3:5], [*source.headers])
        assert found.original is None
        return
    value = source.value or b""
    assert found.original == Original(len(value), hashlib.sha256(value).hexdigest())
    assert (record.key is None, record.value is None) == (source.key is None, source.value is None)
    assert (source.key or b"").startswith(record.key or b"")
    assert value.startswith(record.value or b"")
    # A message that fits with the headers is whole.
    assert batch_size(source.key, source.value, source.headers) + ADDED_BYTES > ROOM
    # Nothing is cut for no reason: with so much of the value that there is a kilobyte less, the rest is full.
    if record.value != source.value:
        assert batch_size(record.key, record.value, record.headers) > ROOM - 1_000


def test_a_header_is_left_out_only_where_it_takes_the_room_of_the_value() -> None:
    value, headers = b"v" * ROOM, [("trace", b"h" * (ROOM // 4))]
    source = RawMessage("interactions", 0, 1, b"7", value, headers)
    assert dead_letter_record(source, Fault.INVALID, "", ROOM).headers[:1] == headers
    large = source._replace(headers=[("trace", b"h" * (ROOM // 2))])
    record = dead_letter_record(large, Fault.INVALID, "", ROOM)
    assert record.cut
    assert record.key == b"7"
    assert "trace" not in dict(record.headers)


def test_headers_of_a_message_cannot_pass_for_those_of_a_cut_one() -> None:
    record = dead_letter_record(RawMessage("i", 0, 1, b"7", b"{", FORGED), Fault.INVALID, "", ROOM)
    assert read_dead_letter(Written(record)).original is None
    message = Written(record)
    again = redriven_headers(message_headers(message), message)
    assert again == [*FORGED, (REDRIVEN_HEADER, b"dead-letters/0/5")]


def test_the_size_of_a_record_is_not_below_that_of_its_batch() -> None:
    headers: Headers = [("name", b"value"), ("né", None)]
    for size in (0, 63, 64, 8_191, 8_192, 2**20, 2**21):
        assert 0 <= record_size(b"k", b"v" * size, headers) - batch_size(b"k", b"v" * size, headers) <= 40
