from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.join.digests import Digester

MASK = 2**64 - 1
KEY = bytes(range(16))


def rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & MASK


def mixed(v: list[int], rounds: int) -> None:
    """Do rounds of SipHash, as in Figure 2.1 of its paper."""
    for _ in range(rounds):
        v[0] = (v[0] + v[1]) & MASK
        v[1] = rotated(v[1], 13) ^ v[0]
        v[0] = rotated(v[0], 32)
        v[2] = (v[2] + v[3]) & MASK
        v[3] = rotated(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & MASK
        v[3] = rotated(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & MASK
        v[1] = rotated(v[1], 17) ^ v[2]
        v[2] = rotated(v[2], 32)


def siphash(data: bytes, key: bytes) -> bytes:
    """SipHash-2-4 with 128 bits, as plain Python."""
    k0, k1 = (int.from_bytes(key[at : at + 8], "little") for at in (0, 8))
    initial = [b"somepseu", b"dorandom", b"lygenera", b"tedbytes"]
    v = [k ^ int.from_bytes(word, "big") for k, word in zip([k0, k1, k0, k1], initial, strict=True)]
    v[1] ^= 0xEE
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) % 256])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v[3] ^= word
        mixed(v, 2)
        v[0] ^= word
    v[2] ^= 0xEE
    mixed(v, 4)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    mixed(v, 4)
    return first.to_bytes(8, "little") + (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")


def test_the_plain_version_has_the_published_vectors() -> None:
    assert siphash(b"", KEY).hex() == "a3817f04ba25a8e66df67214c7550293"
    assert siphash(b"\0", KEY).hex() == "da87c1d86b99af44347659119b22fc45"


@given(
    ids=st.lists(st.one_of(st.text(max_size=40), st.integers(-(2**63), 2**63 - 1))),
    key=st.binary(min_size=16, max_size=16),
)
def test_digests_are_those_of_the_texts_of_ids(ids: list[str | int], key: bytes) -> None:
    found = [each.tobytes() for each in Digester(key).digests(ids)]
    assert found == [siphash(msgspec.json.encode(each), key) for each in ids]


def test_a_key_has_sixteen_bytes() -> None:
    with pytest.raises(ValueError, match="has 3 bytes, and must have 16"):
        Digester(b"key")


def test_no_ids_have_no_digests() -> None:
    assert Digester(KEY).digests([]).shape == (0, 2)
    assert Digester(KEY).digests(["a"]).dtype == np.uint64
