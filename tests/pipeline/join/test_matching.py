from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.join.digests import Digester
from pipeline.join.matching import match_events

ids = st.lists(st.integers(0, 60), max_size=40)


@given(events=ids, labelled=ids)
def test_labels_find_what_a_dictionary_finds(events: list[int], labelled: list[int]) -> None:
    digests = Digester(bytes(16)).digests
    found = match_events(digests(events), digests(labelled))
    repeated = [n for n, event in enumerate(events) if event in events[:n]]
    repeated += [len(events) + n for n, event in enumerate(labelled) if event in labelled[:n]]
    if repeated:
        assert found == repeated[0]
    else:
        rows = {event: row for row, event in enumerate(events)}
        assert not isinstance(found, int)
        assert found.tolist() == [rows.get(event, len(events)) for event in labelled]
