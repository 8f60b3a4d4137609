from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.join.digest_index import EMPTY, DigestIndex
from pipeline.join.digests import Digester, Digests
from tests.support.examples import examples

ROWS = 60


def crowded(homes: list[int]) -> Digests:
    """Return different digests, of which many begin in the same slots, at the end of the table too."""
    digests = np.arange(2 * len(homes), dtype=np.uint64).reshape(-1, 2)
    slots = len(DigestIndex()._slots)
    digests[:, 0] = [(-(-(home % slots) * 2**32 // slots)) << 32 for home in homes]
    return digests


changes = st.lists(st.tuples(st.booleans(), st.integers(0, ROWS - 1)), max_size=150)


@examples(150)
@given(homes=st.lists(st.integers(-3, 3), min_size=ROWS, max_size=ROWS), drawn=changes)
def test_it_finds_what_was_added_and_not_removed(homes: list[int], drawn: list[tuple[bool, int]]) -> None:
    index, digests, held = DigestIndex(), crowded(homes), set[int]()
    for adds, row in drawn:
        if adds and row not in held:
            index.insert(digests, np.array([row]))
            held.add(row)
        elif not adds and row in held:
            index.remove(digests, np.array([row]))
            held.remove(row)
        found = index.find(digests, digests).tolist()
        assert found == [row if row in held else EMPTY for row in range(ROWS)]
        assert len(index) == len(held)


def test_it_grows() -> None:
    ids = [f"event {number}" for number in range(20_000)]
    digests, index = Digester(bytes(16)).digests(ids), DigestIndex()
    for begin in range(0, 20_000, 700):
        index.insert(digests, np.arange(begin, min(begin + 700, 20_000)))
    assert index.find(digests, digests).tolist() == list(range(20_000))
    index.remove(digests, np.arange(0, 20_000, 2))
    found = index.find(digests, digests)
    assert (found[::2] == EMPTY).all()
    assert (found[1::2] == np.arange(1, 20_000, 2)).all()


def test_who_does_not_know_the_key_does_not_know_the_digests() -> None:
    first, second = (Digester(key).digests(["a", "b"]) for key in (bytes(16), b"another key, 16B"))
    assert len({*first.ravel().tolist(), *second.ravel().tolist()}) == 8
