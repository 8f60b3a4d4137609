"""Produce many records at once.

The client takes longer to pass a record on than librdkafka takes to enqueue it. So compiled code calls
librdkafka for all records of a batch, where the client's objects are known to begin with librdkafka's handle.
Elsewhere the client produces all records, and here those that librdkafka refuses, which raises the error.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any, Final, TypeAlias

import confluent_kafka
import numpy as np
from confluent_kafka import Producer
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from forks.compiled.simd import typed_intrinsic
from forks.jit import njit
from pipeline.kafka.client_objects import layout_known
from pipeline.kafka.producer import DeliveryReport
from pipeline.records.texts import Integers, Texts, joined_texts

Words: TypeAlias = NDArray[np.uint64]

_TOPIC, _PARTITION, _VALUE, _KEY, _FLAGS, _TIMESTAMP = 1, 3, 4, 5, 7, 8
"""Kinds of arguments of `rd_kafka_produceva`: `rd_kafka_vtype_t` of rdkafka.h."""
_COPY: Final = 2
"""The flag `RD_KAFKA_MSG_F_COPY`: the value is copied."""
_ARGUMENT_WORDS: Final = 9
"""Words of an argument, `rd_kafka_vu_t`: its kind, then what it is, or the address and the size."""


class _Library:
    """The functions of librdkafka that are called here."""

    def __init__(self) -> None:
        # What an extension module is linked to is found by its own handle, too.
        library = ctypes.CDLL(confluent_kafka.cimpl.__file__)
        self.produce = ctypes.cast(library.rd_kafka_produceva, ctypes.c_void_p).value or 0
        self.destroy_error = library.rd_kafka_error_destroy
        self.destroy_error.argtypes = [ctypes.c_void_p]
        self.destroy_error.restype = None


class BatchProducer:
    """Produces the records of a batch.

    Parameters
    ----------
    producer
        The producer.
    native
        Whether librdkafka is called directly, where that is known to be possible.
    """

    def __init__(self, producer: Producer, *, native: bool = True) -> None:
        self._producer = producer
        # What only has the producer's methods, or other ones, has no handle.
        known = type(producer) is Producer and layout_known()
        self._library = _Library() if native and known else None

    @property
    def native(self) -> bool:
        """Whether librdkafka is called directly."""
        return self._library is not None

    def produce(
        self,
        topic: str,
        partition: int,
        values: Sequence[bytes],
        keys: Sequence[bytes],
        timestamps: NDArray[np.int64],
    ) -> DeliveryReport:
        """Produce records, at least one, and return the delivery report of the first.

        Parameters
        ----------
        topic, partition
            Where they go.
        values, keys
            Those of the n records.
        timestamps
            In milliseconds, shape (n,).

        Raises
        ------
        KafkaException
            A record cannot be produced.
        BufferError
            There is no room for a record.
        """
        report = DeliveryReport()
        if self._library is None:
            reports, no_headers = chain([report], repeat(None)), repeat(None)
            every = (repeat(topic), values, keys, repeat(partition), reports, no_headers, timestamps.tolist())
            for _ in map(self._producer.produce, *every):
                pass  # a call from a loop costs a tenth more, one with named arguments twice as much
            return report
        self._producer.produce(topic, values[0], keys[0], partition, report, None, int(timestamps[0]))
        self._produce_others(self._library, topic, partition, values, keys, timestamps)
        return report

    def _produce_others(
        self,
        library: _Library,
        topic: str,
        partition: int,
        values: Sequence[bytes],
        keys: Sequence[bytes],
        times: NDArray[np.int64],
    ) -> None:
        """Produce all but the first by librdkafka."""
        name = ctypes.c_char_p(topic.encode())
        arguments = np.zeros((6, _ARGUMENT_WORDS), dtype=np.uint64)
        arguments[:, 0] = _TOPIC, _PARTITION, _FLAGS, _VALUE, _KEY, _TIMESTAMP
        arguments[:3, 1] = ctypes.cast(name, ctypes.c_void_p).value or 0, partition, _COPY
        handle = ctypes.c_void_p.from_address(id(self._producer) + object.__basicsize__).value or 0
        of_values, of_keys = (
            each if isinstance(each, Texts) else joined_texts(each) for each in (values, keys)
        )
        value_places = of_values.text.ctypes.data, of_values.begins, of_values.ends
        key_places = of_keys.text.ctypes.data, of_keys.begins, of_keys.ends
        row = 1
        while row < len(times):
            row, error = _produce(library.produce, handle, arguments, *value_places, *key_places, times, row)
            if error:
                library.destroy_error(error)
                self._producer.produce(topic, values[row], keys[row], partition, None, None, int(times[row]))
                row += 1


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    nothing = np.empty(0, dtype=np.int64)
    arguments = np.empty((6, _ARGUMENT_WORDS), dtype=np.uint64)
    _produce(0, 0, arguments, 0, nothing, nothing, 0, nothing, nothing, nothing, 0)


@typed_intrinsic
def _call(_typing: Any, _function: Any, _handle: Any, _arguments: Any, _count: Any) -> Any:
    """Call `rd_kafka_produceva` at an address, and return the address of the error, 0 without one."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        word = ir.IntType(64)
        function = builder.inttoptr(values[0], ir.FunctionType(word, [word] * 3).as_pointer())
        return builder.call(function, values[1:])

    return types.int64(*[types.int64] * 4), generate


@njit(cache=True, nogil=True)
def _produce(
    function: int,
    handle: int,
    arguments: Words,
    values: int,
    value_begins: Integers,
    value_ends: Integers,
    keys: int,
    key_begins: Integers,
    key_ends: Integers,
    timestamps: Integers,
    row: int,
) -> tuple[int, int]:
    """Produce records from a row on; return the row of the first that is refused, and the error's address."""
    while row < len(timestamps):
        arguments[3, 1], arguments[3, 2] = values + value_begins[row], value_ends[row] - value_begins[row]
        arguments[4, 1], arguments[4, 2] = keys + key_begins[row], key_ends[row] - key_begins[row]
        arguments[5, 1] = timestamps[row]
        error = _call(function, handle, arguments.ctypes.data, len(arguments))
        if error:
            return row, error
        row += 1
    return row, 0
