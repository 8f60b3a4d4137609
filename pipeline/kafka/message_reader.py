"""Read many messages at once.

To call the methods of each message costs more than to decode them. So compiled code reads the fields of the
client's objects in memory, where it is known what these look like. Other messages are asked by their methods.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from confluent_kafka import Message
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from forks.compiled.simd import typed_intrinsic
from forks.jit import ZERO, njit, read_only
from pipeline.kafka.client_objects import layout_known
from pipeline.records.inputs import KafkaMessage
from pipeline.records.message_texts import MessageTexts, headers_of
from pipeline.records.texts import Integers, Texts
from pipeline.records.words import SPARE

_WORD: Final = 8
_TOPIC, _VALUE, _KEY, _HEADERS, _NATIVE_HEADERS, _ERROR, _PARTITION = (_WORD * place for place in range(7))
"""Where the fields of a `Message` are, behind what all objects begin with. The first four and the error are
addresses of objects. Headers that nobody has asked for yet are librdkafka's."""


class _Layout(NamedTuple):
    """What the interpreter's objects look like, and the addresses of some."""

    header: int
    """Bytes that all objects begin with, of which the last word is the address of the type. Behind it, texts
    have their length."""
    bytes_header: int
    """Bytes before the contents of `bytes`."""
    text_header: int
    """Bytes before the contents of a text in ASCII, as names of topics are."""
    none: int
    message_type: int
    bytes_type: int


_LAYOUT: Final = _Layout(
    object.__basicsize__,
    bytes.__basicsize__ - 1,  # which counts the zero at the end
    sys.getsizeof("") - 1,
    id(None),
    id(Message),
    id(bytes),
)


class MessageReader:
    """Reads messages as a client delivers them.

    Parameters
    ----------
    native
        Whether the client's objects are read in memory, where that is known to be possible.
    """

    def __init__(self, *, native: bool = True) -> None:
        self.native = native and layout_known()
        """Whether the client's objects are read in memory."""

    def of_one_partition(self, messages: Sequence[Message]) -> bool:
        """Return whether all of them, at least one, are messages of one partition, and none is an event."""
        if self.native:
            objects = _objects(messages)
            return _of_one_partition(objects.ctypes.data, len(objects), _LAYOUT)
        topics, partitions = list(map(Message.topic, messages)), list(map(Message.partition, messages))
        # `any` and not a comparison with None: comparing a KafkaError leaves an exception behind.
        return not any(map(Message.error, messages)) and _all_equal(topics) and _all_equal(partitions)

    def texts(self, messages: Sequence[KafkaMessage]) -> MessageTexts:
        """Return keys and values of messages, and their sizes."""
        if not self.native:
            return MessageTexts.of(messages)
        objects = _objects(messages)
        value_ends, key_ends = np.empty((2, len(objects)), dtype=np.int64)
        value_bytes, key_bytes, headers = _measure(
            objects.ctypes.data, len(objects), _LAYOUT, value_ends, key_ends
        )
        if value_bytes < 0:
            return MessageTexts.of(messages)
        values, keys = np.empty(value_bytes + SPARE, dtype=np.uint8), np.empty(key_bytes, dtype=np.uint8)
        values[value_bytes:] = 0
        value_begins, key_begins = np.empty((2, len(objects)), dtype=np.int64)
        places = values.ctypes.data, value_begins, value_ends, keys.ctypes.data, key_begins, key_ends
        _copy(objects.ctypes.data, len(objects), _LAYOUT, *places)
        return MessageTexts.sized(
            Texts(read_only(keys), key_begins, key_ends),
            Texts(read_only(values), value_begins, value_ends),
            [*map(headers_of, messages)] if headers else (),
        )


def _objects(messages: Sequence[object]) -> NDArray[np.object_]:
    """Return an array in whose memory are the addresses of the messages."""
    return np.fromiter(messages, dtype=object, count=len(messages))


def _all_equal(column: Sequence[object]) -> bool:
    return column.count(column[0]) == len(column)


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    nothing = np.empty(0, dtype=np.int64)
    _of_one_partition(0, 0, _LAYOUT)
    _measure(0, 0, _LAYOUT, nothing, nothing)
    _copy(0, 0, _LAYOUT, 0, nothing, nothing, 0, nothing, nothing)


@typed_intrinsic
def _word(_typing: Any, _address: Any) -> Any:
    """Return the word at an address."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.load(builder.inttoptr(values[0], ir.IntType(64).as_pointer()))

    return types.int64(types.int64), generate


@typed_intrinsic
def _copy_bytes(_typing: Any, _to: Any, _from: Any, _count: Any) -> Any:
    """Copy bytes from one address to another."""

    def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        to, source = (builder.inttoptr(each, ir.IntType(8).as_pointer()) for each in values[:2])
        cgutils.raw_memcpy(builder, to, source, values[2], 1)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 3), generate


@njit(cache=True)
def _of_one_partition(objects: int, count: int, layout: _Layout) -> bool:
    """Return whether all objects are messages of one partition.

    Parameters
    ----------
    objects
        The address of their addresses.
    count
        How many there are.
    layout
        That of objects.
    """
    topic = partition = length = ZERO
    for place in range(count):
        message = _word(objects + _WORD * place)
        if _word(message + layout.header - _WORD) != layout.message_type:
            return False
        fields = message + layout.header
        error, own_topic = _word(fields + _ERROR), _word(fields + _TOPIC)
        if own_topic == 0 or (error != 0 and error != layout.none):  # noqa: PLR1714 - no set in compiled code
            return False
        own_partition = _word(fields + _PARTITION) & 0xFFFFFFFF
        if place == 0:
            topic, partition, length = own_topic, own_partition, _word(own_topic + layout.header)
        elif own_partition != partition or _word(own_topic + layout.header) != length:
            return False
        elif own_topic != topic:
            own_text, text, at = own_topic + layout.text_header, topic + layout.text_header, ZERO
            while at + _WORD <= length:
                if _word(own_text + at) != _word(text + at):
                    return False
                at += _WORD
            # Memory is allocated in words, so that there is a whole one.
            if at < length and (_word(own_text + at) ^ _word(text + at)) << (8 * (_WORD - (length - at))):
                return False
    return True


@njit(cache=True)
def _measure(
    objects: int, count: int, layout: _Layout, value_ends: Integers, key_ends: Integers
) -> tuple[int, int, bool]:
    """Find where values and keys will end that are copied one behind the other.

    Parameters
    ----------
    objects, count, layout
        As in `_of_one_partition`.
    value_ends, key_ends
        Written: the ends, shape (n,).

    Returns
    -------
    tuple
        Bytes of all values, and of all keys, and whether any message has headers. The first is negative if
        an object has to be asked by its methods.
    """
    value_end = key_end = ZERO
    headers = False
    for place in range(count):
        message = _word(objects + _WORD * place)
        if _word(message + layout.header - _WORD) != layout.message_type:
            return -1, 0, False
        fields = message + layout.header
        value, key = _length(_word(fields + _VALUE), layout), _length(_word(fields + _KEY), layout)
        if value < 0 or key < 0:
            return -1, 0, False
        value_end += value
        key_end += key
        value_ends[place], key_ends[place] = value_end, key_end
        headers |= _word(fields + _HEADERS) != 0 or _word(fields + _NATIVE_HEADERS) != 0
    return value_end, key_end, headers


@njit(cache=True)
def _length(text: int, layout: _Layout) -> int:
    """Return the length of `bytes`, 0 for None and no address, and -1 for other objects."""
    if text == 0 or text == layout.none:  # noqa: PLR1714 - no set in compiled code
        return ZERO
    return _word(text + layout.header) if _word(text + layout.header - _WORD) == layout.bytes_type else -1


@njit(cache=True)
def _copy(
    objects: int,
    count: int,
    layout: _Layout,
    values: int,
    value_begins: Integers,
    value_ends: Integers,
    keys: int,
    key_begins: Integers,
    key_ends: Integers,
) -> None:
    """Copy values and keys one behind the other.

    Parameters
    ----------
    objects, count, layout
        As in `_of_one_partition`.
    values
        The address to copy values to.
    value_begins, value_ends
        Written: where each value begins; where it ends; shape (n,).
    keys, key_begins, key_ends
        The same of keys.
    """
    value_begin = key_begin = ZERO
    for place in range(count):
        fields = _word(objects + _WORD * place) + layout.header
        value_begins[place], key_begins[place] = value_begin, key_begin
        _copy_bytes(
            values + value_begin,
            _word(fields + _VALUE) + layout.bytes_header,
            value_ends[place] - value_begin,
        )
        _copy_bytes(keys + key_begin, _word(fields + _KEY) + layout.bytes_header, key_ends[place] - key_begin)
        value_begin, key_begin = value_ends[place], key_ends[place]
