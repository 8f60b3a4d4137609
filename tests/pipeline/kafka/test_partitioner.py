from __future__ import annotations

import pytest

from pipeline.kafka.partitioner import murmur2, partition


@pytest.mark.parametrize(
    ("data", "signed"),
    [
        # The vectors by which Kafka's own clients test their hash.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_gives_the_hash_of_the_java_clients(data: bytes, signed: int) -> None:
    assert murmur2(data) == signed % 2**32


def test_a_negative_hash_gives_a_partition_too() -> None:
    assert partition(b"foobar", 10) == (-790332482 & 0x7FFFFFFF) % 10
