"""What librdkafka refuses of a batch raises what the client's own method raises."""

from __future__ import annotations

import numpy as np
import pytest
from confluent_kafka import KafkaException, Producer

from pipeline.kafka.batch_producer import BatchProducer

RECORDS = 10


def producer(**settings: int) -> Producer:
    """A producer that connects to nobody."""
    return Producer({"bootstrap.servers": "", **settings})


def produce(to: Producer, values: list[bytes], *, native: bool) -> None:
    keys = [*map(str.encode, map(str, range(len(values))))]
    BatchProducer(to, native=native).produce("topic", 0, values, keys, np.ones(len(values), dtype=np.int64))


def test_the_installed_client_is_known() -> None:
    assert BatchProducer(producer(), native=True).native, "look at what its objects begin with"
    assert not BatchProducer(producer(), native=False).native


@pytest.mark.parametrize("native", [False, True])
def test_a_record_that_is_too_large_is_refused_by_name(native: bool) -> None:
    to = producer(**{"message.max.bytes": 1_000})
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        produce(to, [b"1", b"2", bytes(2_000), b"4"], native=native)
    assert len(to) == 2


@pytest.mark.parametrize("native", [False, True])
def test_a_full_queue_raises_an_error(native: bool) -> None:
    to = producer(**{"queue.buffering.max.messages": 5})
    with pytest.raises(BufferError):
        produce(to, [b"1"] * RECORDS, native=native)
    assert len(to) == 5


def test_a_producer_of_another_kind_is_called_record_by_record() -> None:
    class Other(Producer):
        """Has the client's methods, and perhaps others."""

    to = Other({"bootstrap.servers": ""})
    assert not BatchProducer(to, native=True).native
    produce(to, [b"1"] * RECORDS, native=True)
    assert len(to) == RECORDS
