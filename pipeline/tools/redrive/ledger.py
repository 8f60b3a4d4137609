"""Which dead letters are wanted, and which were sent back already."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, NamedTuple, Self

import msgspec

from pipeline.errors import ConfigError, StateError
from pipeline.records.fields import Count

LARGEST: Final = 4_096
"""Bytes of a ledger, at most: the default of the brokers' `offset.metadata.max.bytes`."""
ENDLESS: Final = 2**63 - 1


class RecordedDeadLetter(NamedTuple):
    """What a selection looks at in a dead letter."""

    offset: int
    fault: str | None
    timestamp: int
    """When it was written, in milliseconds."""
    redriven: bool
    """Whether its message came from another dead letter."""


class Selection(msgspec.Struct, frozen=True, array_like=True):
    """Some dead letters of a partition.

    Examples
    --------
    >>> wanted = Selection(faults=("invalid",), until=100)
    >>> [RecordedDeadLetter(0, fault, 99, False) in wanted for fault in ("invalid", "late")]
    [True, False]
    """

    begin: Count = 0
    """The first offset."""
    end: Annotated[int, msgspec.Meta(ge=0, le=ENDLESS)] = ENDLESS
    """The offset behind the last."""
    faults: tuple[str, ...] = ()
    """Their faults, in order; all if there is none."""
    since: int | None = None
    """The time of the earliest, in milliseconds; None for no limit."""
    until: int | None = None
    """The time behind the latest."""
    again: bool = False
    """Whether those are among them whose message was sent back before."""

    def __contains__(self, dead_letter: object) -> bool:
        """Tell whether a dead letter is one of these."""
        assert isinstance(dead_letter, RecordedDeadLetter)
        return (
            self.begin <= dead_letter.offset < self.end
            and (not self.faults or dead_letter.fault in self.faults)
            and (self.since is None or dead_letter.timestamp >= self.since)
            and (self.until is None or dead_letter.timestamp < self.until)
            and (self.again or not dead_letter.redriven)
        )

    def admits(self, other: Selection) -> bool:
        """Return whether all dead letters that another selection takes, at whatever offset, are taken too."""
        return (
            (not self.faults or (bool(other.faults) and {*other.faults} <= {*self.faults}))
            and (self.since is None or (other.since is not None and self.since <= other.since))
            and (self.until is None or (other.until is not None and self.until >= other.until))
            and (self.again or not other.again)
        )

    def covers(self, other: Selection) -> bool:
        """Return whether all of another selection is in this one."""
        return self.admits(other) and self.begin <= other.begin and other.end <= self.end


class Ledger(msgspec.Struct, frozen=True, array_like=True):
    """The dead letters of a partition that were dealt with: all that are in one of the selections.

    Examples
    --------
    >>> ledger = Ledger().with_(Selection(0, 10)).with_(Selection(10, 20))
    >>> ledger
    Ledger(selections=(Selection(begin=0, end=20, faults=(), since=None, until=None, again=False),))
    >>> Ledger.parse(ledger.text()) == ledger
    True
    >>> ledger.start(Selection(5, 99))
    20
    """

    selections: tuple[Selection, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the inverse of `text`; an empty ledger for an empty text.

        Raises
        ------
        StateError
            Something else than a redrive has committed the text.
        """
        try:
            return msgspec.json.decode(text, type=cls) if text else cls()
        except (msgspec.DecodeError, RecursionError) as error:
            raise StateError(
                "the offsets of the redrive group were not committed by `forks redrive`, so that it is not "
                f"known what was sent back ({error}). Delete that group if nothing was"
            ) from error

    def text(self) -> str:
        """Return the ledger as it is committed.

        Raises
        ------
        ConfigError
            It is too large.
        """
        text = msgspec.json.encode(self).decode()
        if len(text) > LARGEST:
            raise ConfigError(
                f"redrives with {len(self.selections)} different options are more than can be remembered. "
                "Redrive without --reason, --since, --until and --offsets: what was sent back is left out"
            )
        return text

    def __contains__(self, dead_letter: object) -> bool:
        """Tell whether a dead letter was dealt with."""
        return any(dead_letter in selection for selection in self.selections)

    def with_(self, done: Selection) -> Ledger:
        """Return a ledger in which a selection is dealt with, too."""
        kept: list[Selection] = []
        for each in self.selections:
            alike = each.admits(done) and done.admits(each)
            if alike and each.begin <= done.end and done.begin <= each.end:
                done = msgspec.structs.replace(
                    done, begin=min(each.begin, done.begin), end=max(each.end, done.end)
                )
            else:
                kept.append(each)
        if any(each.covers(done) for each in kept):
            return Ledger(tuple(kept))
        return Ledger((*(each for each in kept if not done.covers(each)), done))

    def start(self, wanted: Selection) -> int:
        """Return the first offset at which a selection may have something that was not dealt with."""
        offset = wanted.begin
        for each in sorted(self.selections, key=lambda selection: selection.begin):
            if each.admits(wanted) and each.begin <= offset < each.end:
                offset = each.end
        return offset


def parse_offsets(text: str) -> tuple[int, int]:
    """Parse the value of `--offsets`: the first and the last offset, or a single one.

    Parameters
    ----------
    text
        Value of the option.

    Returns
    -------
    tuple of int
        The first offset, and the one behind the last.

    Raises
    ------
    ConfigError
        The text is no range of offsets.

    Examples
    --------
    >>> parse_offsets("120-180"), parse_offsets("7")
    ((120, 181), (7, 8))
    """
    first, dash, last = text.partition("-")
    numbers: Iterable[str] = (first, last) if dash else (first, first)
    if all(number.isascii() and number.isdecimal() and len(number) < 19 for number in numbers):
        begin, end = (int(number) for number in numbers)
        if begin <= end:
            return begin, end + 1
    raise ConfigError(f"--offsets {text}: accepted are an offset, and a first and a last one, like 120-180")
