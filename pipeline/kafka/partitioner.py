"""Assign keys to partitions as the Java clients' default partitioner does.

librdkafka calls it `murmur2_random`. It is computed here to know a record's partition before it is written.
"""

from __future__ import annotations

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995
BITS = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Hash bytes with Austin Appleby's MurmurHash2 and Kafka's seed, to an unsigned 32-bit integer.

    Examples
    --------
    >>> murmur2(b"foobar") - 2**32
    -790332482
    """
    end = len(data) & ~3
    digest = SEED ^ len(data)
    for begin in range(0, end, 4):
        word = int.from_bytes(data[begin : begin + 4], "little") * MULTIPLIER & BITS
        word = (word ^ word >> 24) * MULTIPLIER & BITS
        digest = digest * MULTIPLIER & BITS ^ word
    if end < len(data):
        digest = (digest ^ int.from_bytes(data[end:], "little")) * MULTIPLIER & BITS
    digest = (digest ^ digest >> 13) * MULTIPLIER & BITS
    return digest ^ digest >> 15


def partition(key: bytes, partitions: int) -> int:
    """Return the partition of a record with this key.

    Examples
    --------
    >>> [partition(user, 8) for user in (b"0", b"1", b"2")]
    [4, 7, 0]
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions
