"""Which dead letters were dealt with, against a set of their offsets."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ConfigError, StateError
from pipeline.tools.redrive.ledger import ENDLESS, Ledger, RecordedDeadLetter, Selection, parse_offsets
from tests.support.examples import examples

FAULTS = ("future", "invalid", "late")
dead_letters = st.lists(
    st.tuples(st.sampled_from([*FAULTS, None]), st.integers(0, 5), st.booleans()), max_size=12
).map(lambda rows: [RecordedDeadLetter(offset, *row) for offset, row in enumerate(rows)])
limits = st.none() | st.integers(0, 5)
selections = st.builds(
    Selection,
    st.integers(0, 8),
    st.integers(4, 12) | st.just(ENDLESS),
    st.sets(st.sampled_from(FAULTS)).map(lambda faults: tuple(sorted(faults))),
    limits,
    limits,
    st.booleans(),
)


def takes(wanted: Selection, letter: RecordedDeadLetter) -> bool:
    """Whether a selection has a letter, in other words than the code's."""
    if letter.redriven and not wanted.again:
        return False
    since = 0 if wanted.since is None else wanted.since
    until = 99 if wanted.until is None else wanted.until
    faults: set[str | None] = {*wanted.faults} or {*FAULTS, None}
    in_time = letter.timestamp in range(since, until)
    return in_time and letter.offset in range(wanted.begin, wanted.end) and letter.fault in faults


@examples(300)
@given(dead_letters, st.lists(st.tuples(selections, st.integers(0, 4)), max_size=6), st.integers(1, 3))
def test_each_dead_letter_is_sent_once_whatever_is_selected_and_when_it_is_killed(
    written: list[RecordedDeadLetter], runs: list[tuple[Selection, int]], size: int
) -> None:
    """Each run commits some batches and is killed, or comes to the end."""
    ledger, sent, stop = Ledger(), list[int](), len(written)
    for wanted, batches in runs:
        before = set(sent)
        position, end = ledger.start(wanted), min(wanted.end, stop)
        assert not [each for each in written[:position] if takes(wanted, each) and each.offset not in before]
        for _ in range(batches):
            if position >= end:
                break
            upto = min(position + size, end)
            sent += [each.offset for each in written[position:upto] if each in wanted and each not in ledger]
            assert all(takes(wanted, written[offset]) for offset in set(sent) - before)
            ledger = Ledger.parse(ledger.with_(msgspec.structs.replace(wanted, end=upto)).text())
            position = upto
        if position >= end:
            assert {each.offset for each in written[:end] if takes(wanted, each)} <= set(sent)
        assert {each.offset for each in written if each in ledger} == set(sent)
    assert len(sent) == len(set(sent))


def test_runs_of_the_same_kind_take_no_more_room() -> None:
    ledger = Ledger()
    for end in range(10, 1_000, 10):
        ledger = ledger.with_(Selection(0, end, ("invalid",)))
    assert len(ledger.selections) == 1
    assert ledger.with_(Selection(0, 2_000)).selections == (Selection(0, 2_000),)


def test_what_cannot_be_remembered_is_refused() -> None:
    ledger = Ledger(tuple(Selection(2 * at, 2 * at + 1) for at in range(1_000)))
    with pytest.raises(ConfigError, match="1000 different options"):
        ledger.text()


@pytest.mark.parametrize("text", ["state=5", "[[[1]", '[[["a"]]]', "[" * 2_000])
def test_offsets_of_somebody_else_are_refused(text: str) -> None:
    with pytest.raises(StateError, match="were not committed by `forks redrive`"):
        Ledger.parse(text)


@pytest.mark.parametrize("text", ["", "-5", "5-", "9-8", "a", "1-2-3", "9" * 20])
def test_a_wrong_range_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="like 120-180"):
        parse_offsets(text)
