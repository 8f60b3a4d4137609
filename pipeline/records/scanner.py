"""Read the fields of records to columns, for inputs and for outcomes.

Most records are flat objects in plain ASCII. These are read here. What is accepted and what it means is what
the decoder of their type says, which has to be asked for every other record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
from msgspec import inspect
from msgspec.structs import FieldInfo

from pipeline.records import scan
from pipeline.records.fields import Id
from pipeline.records.places import flagged
from pipeline.records.scan import Flags, Integers
from pipeline.records.texts import Texts, joined_texts
from pipeline.records.tokens import NOTHING, Floats
from pipeline.records.words import SPARE

MAX_INTEGER: Final = 2**63 - 1
_PLAIN: Final = frozenset(map(chr, range(32, 127))) - {'"', "\\"}
"""Characters of names that stand for themselves."""
_decode_numbers = msgspec.json.Decoder(list[float]).decode
_decode_lists = msgspec.json.Decoder(list[list[float]]).decode


class Field(NamedTuple):
    """A field of records."""

    name: str
    member: str
    """Its name in JSON."""
    kind: int
    """See `pipeline.records.scan`."""
    nullable: bool
    limits: tuple[float, float]
    """The range of its numbers; infinite where they have none."""

    @classmethod
    def of(cls, field: FieldInfo) -> Field | None:
        """Return the field of a type; None for one that is not read here."""
        info = inspect.type_info(field.type)
        nullable = isinstance(info, inspect.UnionType) and info.includes_none
        if isinstance(info, inspect.UnionType) and nullable:
            others = tuple(each for each in info.types if not isinstance(each, inspect.NoneType))
            info = others[0] if len(others) == 1 else inspect.UnionType(others)
        info = info.type if isinstance(info, inspect.Metadata) else info
        kind = scan.ID if field.type == Id else _kind(info, field.name)
        if kind is None or not _PLAIN.issuperset(field.encode_name):
            return None
        least, most = getattr(info, "ge", None), getattr(info, "le", None)
        limits = -np.inf if least is None else least, np.inf if most is None else most
        return cls(field.name, field.encode_name, kind, nullable, limits)


def _kind(info: inspect.Type, name: str) -> int | None:
    match info:
        case inspect.IntType(gt=None, lt=None) if (info.ge or 0) <= 0:
            return scan.INTEGER
        case inspect.FloatType(gt=None, lt=None):
            return scan.NUMBER
        case inspect.BoolType():
            return scan.FLAG
        case inspect.LiteralType() if name == "status":
            return scan.STATUS
        case inspect.ListType() if name == "features":
            return scan.NUMBERS
        case _:
            return None


class Scanned(NamedTuple):
    """Fields of records by column; the rows of those that are not usual have no meaning."""

    records: Texts
    """Shape (n,), one behind the other and with `SPARE` zeros behind them."""
    values: Texts
    """The value of each field in the same buffer, shape (fields, n)."""
    integers: Integers
    """Whole numbers, also of ids, and flags; 0 for numbers; `NOTHING` for null and for other ids; shape
    (fields, n)."""
    numbers: Floats
    """Numbers, 0 for null; shape (fields, n)."""
    lists: Floats
    """The list of numbers, shape (n, its length)."""
    usual: Flags
    """Whether the columns have all of a record, shape (n,)."""


class Scanner:
    """Reads records of one type.

    Parameters
    ----------
    fields
        The fields that all records have.
    only
        Whether they have no other fields.
    needed
        The numbers that are needed, and not only to be numbers.
    length
        The length of their list of numbers.
    """

    def __init__(
        self, fields: Sequence[Field], *, only: bool, needed: Sequence[str], length: int = 0
    ) -> None:
        names = [f'"{field.member}":'.encode() for field in fields]
        whole = [field.limits[1] if field.kind == scan.INTEGER else np.inf for field in fields]
        self.places = {field.name: place for place, field in enumerate(fields)}
        """The place of each field among the columns."""
        self._layout = (
            np.frombuffer(b"".join([*names, bytes(SPARE)]), dtype=np.uint8),
            np.cumsum([0, *map(len, names)]),
            np.array([field.kind for field in fields]),
            np.array([field.nullable for field in fields]),
            np.array([int(min(each, MAX_INTEGER)) for each in whole]),
            only,
        )
        self._ranges = {
            place: field.limits
            for place, field in enumerate(fields)
            if field.kind == scan.NUMBER and (field.name in needed or field.limits != (-np.inf, np.inf))
        }
        self._list = next((place for place, field in enumerate(fields) if field.kind == scan.NUMBERS), None)
        self._length = length

    def scan(self, records: Texts) -> Scanned:
        """Read records, one behind the other with `SPARE` zeros behind them; an empty one is not usual."""
        n, fields = len(records), len(self.places)
        values = Texts(records.text, *np.zeros((2, fields, n), dtype=np.int64))
        integers, numbers = np.empty((fields, n), dtype=np.int64), np.zeros((fields, n))
        lists, usual = np.empty((n, self._length)), np.empty(n, dtype=np.bool_)
        scan.scan(
            records.text,
            records.ends,
            *self._layout,
            values.begins,
            values.ends,
            integers,
            numbers,
            lists,
            usual,
            np.full(fields + 1, NOTHING),
        )
        for place, (least, most) in self._ranges.items():
            _parse(values.column(place), numbers[place], np.isnan(numbers[place]) & usual)
            usual &= (numbers[place] >= least) & (numbers[place] <= most)
        if self._list is not None:
            _parse(values.column(self._list), lists, (integers[self._list] == NOTHING) & usual)
        return Scanned(records, values, integers, numbers, lists, usual)


def decode_lists(texts: Sequence[bytes], length: int) -> Floats:
    """Decode JSON lists of so many numbers each into rows, shape (n, length).

    Raises
    ------
    msgspec.DecodeError
        One of the texts is no such list.

    Examples
    --------
    >>> decode_lists([b"[0.25,-3.0]", b"[4e-6,17.483921]"], 2).tolist()
    [[0.25, -3.0], [4e-06, 17.483921]]
    """
    whole = joined_texts(texts, SPARE)
    lists, usual = np.empty((len(texts), length)), np.empty(len(texts), dtype=np.bool_)
    scan.read_lists(whole.text, whole.begins, whole.ends, lists, usual)
    for row in flagged(~usual).tolist():
        numbers = _decode_numbers(texts[row])
        if len(numbers) != length:
            raise msgspec.ValidationError(f"Expected `array` of length {length}")
        lists[row] = numbers
    return lists


def _parse(texts: Texts, numbers: Floats, flags: Flags) -> None:
    """Parse those numbers, or lists of numbers, that the scan has left to a parser."""
    rows = flagged(flags)
    if len(rows):
        decode = _decode_numbers if numbers.ndim == 1 else _decode_lists
        numbers[rows] = np.array(texts.select(rows).decode(decode))
