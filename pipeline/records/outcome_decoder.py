"""Decode outcomes to columns, without a record for each.

Workers write outcomes in one form: the fields in their order, without space. Those in this form whose text
is plain ASCII, and that hold nothing but a prediction and its label, are read here. What is accepted and what
it means is what the decoder of `OutputTypes.raw_outcomes` says. It is asked for every other outcome.
"""

# ruff: noqa: PLR0917 -- compiled code is called by position
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Self

import msgspec
import numpy as np
from msgspec import inspect
from msgspec.structs import FieldInfo

from forks.jit import njit
from pipeline.records.decimals import decode_rows
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.encoding import encode
from pipeline.records.entities import columns_of
from pipeline.records.fields import FEATURES_LENGTH, Id
from pipeline.records.input_columns import Floats, Integers, decode_list, joined
from pipeline.records.output_types import KUAIREC_TYPES, OutputTypes
from pipeline.records.outputs import Outcome
from pipeline.records.quotients import MAX_DIGITS, exact_quotient
from pipeline.records.scan import Flags
from pipeline.records.texts import Bytes, Offsets
from pipeline.records.words import SPARE, load_word, lowest_bit

FEWEST: Final = 16
"""Outcomes below which it costs less to decode them one by one."""
NOTHING: Final = -1
"""Written in place of a whole number, a flag or a time where the value is null."""

ID, INTEGER, NUMBER, FLAG, FEATURES, STATUS = range(6)
"""Kinds of fields."""

MAX_ID: Final = 256
"""Characters of an id, at most."""
MAX_INTEGER: Final = 2**63 - 1
MAX_EXACT_DIGITS: Final = 15
"""Digits of numbers that a float holds exactly."""
MAX_NUMBER: Final = 40
"""Characters of a number, at most."""
MAX_EXPONENT_DIGITS: Final = 2
"""Digits of an exponent, at most, so that no number is beyond the range of floats."""
MAX_EXACT_POWER: Final = 22
_POWERS: Final = np.array([float(f"1e{power}") for power in range(MAX_EXACT_POWER + 1)])
"""The powers of ten that a float holds exactly."""

_WHOLE_POWERS: Final = np.array([10**power for power in range(9)], dtype=np.uint64)

_QUOTE, _BACKSLASH, _COMMA, _MINUS, _PLUS, _DOT = (ord(sign) for sign in '"\\,-+.')
_OPEN, _CLOSE, _BRACE, _ZERO, _NINE, _LOWER_E, _UPPER_E, _N, _T = (ord(sign) for sign in "[]}09eEnt")
_SPACE, _TILDE = 32, 126
_LITERALS: Final = np.frombuffer(b'nulltruefalse"labelled""expired"' + bytes(SPARE), dtype=np.uint8)
_NULL, _TRUE, _FALSE, _LABELLED, _EXPIRED, _LITERALS_END = (np.uint64(at) for at in (0, 4, 8, 13, 23, 32))
"""Where each of them begins, and the end of the last."""

# Places are unsigned: compiled code looks whether signed ones are negative.
_ABSENT: Final = np.uint64(0)
"""The end of something that is not there: nothing ends at the very beginning."""
_ONE, _WORD, _BYTE_BITS, _WORD_BITS = (np.uint64(number) for number in (1, 8, 8, 64))
_NO_ID, _LONGEST_ID = np.uint64(2), np.uint64(MAX_ID + 2)
"""Characters of strings with their quotes: none, and as many as an id may have."""
_ZEROS, _ABOVE_NINE = np.uint64(0x3030303030303030), np.uint64(0x7676767676767676)
_HIGH_BITS = np.uint64(0x8080808080808080)

_decode_ids = msgspec.json.Decoder(list[int | str]).decode
_decode_numbers = msgspec.json.Decoder(list[float]).decode
_decode_rows = msgspec.json.Decoder(list[list[float]]).decode


def _no_record(_value: bytes) -> Outcome:
    """Stand for the decoder of outcomes that all have records."""
    raise AssertionError("the outcome has a record")


@dataclass(frozen=True, slots=True, eq=False)
class DecodedOutcomes:
    """Outcomes in the order of the log, column by column: what models and joins need of them.

    Attributes
    ----------
    sequences, prediction_sequences, prediction_numbers
        As in `Outcome`.
    ids
        The ids, one column for each entity.
    timestamps, label_timestamps
        Times in milliseconds, shape (n,); `NO_TIMESTAMP` where no label came.
    learned
        Whether a label is learned, shape (n,).
    labels
        Values of the labels, 0 where there is none, shape (n,).
    weights
        Weights of the labels, shape (n,); None where the stream's labels have none.
    features
        Shape (n, features).
    records
        The outcomes by row that are not usual: all that hold shares, or replace a label.
    text
        The JSON of the others and of all events' ids is in it.
    event_begins, event_ends
        Where the ids of the events are in it, shape (n,).
    begins, ends
        Where the outcomes without a record are in it, shape (n,).
    decode
        Makes the record of such an outcome.

    Examples
    --------
    >>> outcome = Outcome(
    ...     "e", 7, 3, 5, 0.5, None, True, [0.25], 0, 9, 0.8, True, 6, True, 0.2, "labelled", sequence=4
    ... )
    >>> outcomes = DecodedOutcomes.of([outcome], np.array([[0.25]]), entities=2)
    >>> outcomes.sequences, outcomes.ids, outcomes.labels.tolist()
    ([4], ([7], [3]), [0.8])
    """

    sequences: list[int]
    prediction_sequences: list[int]
    prediction_numbers: list[int]
    ids: tuple[list[Id], ...]
    timestamps: Integers
    label_timestamps: Integers
    learned: Flags
    labels: Floats
    weights: Floats | None
    features: Floats
    records: Mapping[int, Outcome]
    text: Bytes
    event_begins: Integers
    event_ends: Integers
    begins: Integers
    ends: Integers
    decode: Callable[[bytes], Outcome]

    def __len__(self) -> int:
        return len(self.sequences)

    @classmethod
    def of(cls, records: Sequence[Outcome], features: Floats, entities: int) -> Self:
        """Return the columns of records of a stream with so many entities, given their features."""
        n, lines = len(records), [encode(each.event_id) for each in records]
        stops = np.cumsum(np.fromiter(map(len, lines), np.int64, n))
        moments = [each.label_timestamp for each in records]
        weighted = bool(records) and records[0].weighted
        return cls(
            [each.sequence for each in records],
            [each.prediction_sequence for each in records],
            [each.prediction_number for each in records],
            columns_of([each.ids for each in records], entities),
            np.array([each.timestamp for each in records], dtype=np.int64),
            np.array([NO_TIMESTAMP if each is None else each for each in moments], dtype=np.int64),
            np.array([each.label is not None for each in records], dtype=np.bool_),
            np.array([each.watch_ratio or 0.0 for each in records], dtype=np.float64),
            np.array([each.weight for each in records], dtype=np.float64) if weighted else None,
            features,
            dict(enumerate(records)),
            _bytes_of(b"".join(lines)),
            stops - np.fromiter(map(len, lines), np.int64, n),
            stops,
            np.zeros(n, dtype=np.int64),
            np.zeros(n, dtype=np.int64),
            _no_record,
        )

    def __getitem__(self, rows: slice) -> Self:
        """Return those of some rows, one after the other."""
        begin, end, _ = rows.indices(len(self))
        if (begin, end) == (0, len(self)):
            return self
        return replace(
            self,
            sequences=self.sequences[rows],
            prediction_sequences=self.prediction_sequences[rows],
            prediction_numbers=self.prediction_numbers[rows],
            ids=tuple([column[rows] for column in self.ids]),
            timestamps=self.timestamps[rows],
            label_timestamps=self.label_timestamps[rows],
            learned=self.learned[rows],
            labels=self.labels[rows],
            weights=None if self.weights is None else self.weights[rows],
            features=self.features[rows],
            records={row - begin: each for row, each in self.records.items() if begin <= row < end},
            event_begins=self.event_begins[rows],
            event_ends=self.event_ends[rows],
            begins=self.begins[rows],
            ends=self.ends[rows],
        )

    def record(self, row: int) -> Outcome:
        """Return the outcome of a row."""
        found = self.records.get(row)
        return self.decode(self.text[self.begins[row] : self.ends[row]].tobytes()) if found is None else found


class OutcomeDecoder:
    """Decodes outcomes of one stream.

    Parameters
    ----------
    types
        The types of the stream's outputs.
    """

    def __init__(self, types: OutputTypes) -> None:
        self.types = types
        self._scanner = _scanner_of(types)

    def decode(self, values: Sequence[bytes]) -> DecodedOutcomes:
        """Decode outcomes.

        Parameters
        ----------
        values
            The records' JSON.

        Raises
        ------
        msgspec.DecodeError, UnicodeDecodeError
            One of the values is no outcome.
        """
        if self._scanner is None or len(values) < FEWEST:
            return self._records(values)
        found, usual = self._scanner.decode(values)
        if usual.all():
            return found
        others = np.flatnonzero(~usual)
        records = self._records([values[row] for row in others.tolist()])
        return records if len(others) == len(values) else _with_others(found, others, records)

    def _records(self, values: Sequence[bytes]) -> DecodedOutcomes:
        """Decode outcomes one by one."""
        records = list(map(self.types.raw_outcomes.decode, values))
        features = decode_rows([record.features for record in records], self.types.features)
        return DecodedOutcomes.of(records, features, self.types.entities)


def _with_others(found: DecodedOutcomes, rows: Integers, others: DecodedOutcomes) -> DecodedOutcomes:
    """Write other outcomes to their rows."""
    places = rows.tolist()
    for column, values in zip(_lists(found), _lists(others), strict=True):
        for row, value in zip(places, values, strict=True):
            column[row] = value
    for name in ("timestamps", "label_timestamps", "learned", "labels", "weights", "features"):
        if getattr(found, name) is not None:
            getattr(found, name)[rows] = getattr(others, name)
    found.event_begins[rows] = len(found.text) + others.event_begins
    found.event_ends[rows] = len(found.text) + others.event_ends
    records = dict(zip(places, others.records.values(), strict=True))
    return replace(found, records=records, text=joined([found.text, others.text]))


def _lists(outcomes: DecodedOutcomes) -> list[list[Any]]:
    return [outcomes.sequences, outcomes.prediction_sequences, outcomes.prediction_numbers, *outcomes.ids]


class _Scanner:
    """Finds the fields of usual outcomes.

    Parameters
    ----------
    types
        The types of the stream's outputs.
    fields
        The fields of an outcome up to its sequence.
    kinds
        The kind of each.
    """

    def __init__(self, types: OutputTypes, fields: Sequence[FieldInfo], kinds: Sequence[int]) -> None:
        names = [encode(each.encode_name) + b":" for each in fields]
        texts = [b"{" + names[0], *(b"," + name for name in names[1:])]
        infos = [_unwrapped(each) for each in fields]
        self._types = types
        self._names = _bytes_of(b"".join([*texts, bytes(SPARE)]))
        self._name_ends = np.cumsum([*map(len, texts)], dtype=np.uint64)
        self._kinds = np.array(kinds)
        self._nullable = np.array([nullable for _, nullable in infos])
        self._most = np.array(
            [
                info.le if isinstance(info, inspect.IntType) and info.le is not None else MAX_INTEGER
                for info, _ in infos
            ]
        )
        self._places = {each.name: place for place, each in enumerate(fields)}
        self._parsed = {
            place: (-np.inf if info.ge is None else info.ge, np.inf if info.le is None else info.le)
            for place, (info, _) in enumerate(infos)
            if isinstance(info, inspect.FloatType)
            and (fields[place].name == "watch_ratio" or (info.ge, info.le) != (None, None))
        }
        """The numbers that are needed, or have a range, and the range."""

    @classmethod
    def of(cls, types: OutputTypes) -> Self | None:
        """Return the scanner of a stream's outcomes; None where they have fields that it does not know."""
        fields = [*msgspec.structs.fields(types.outcome)]
        fields = fields[: [each.name for each in fields].index("sequence") + 1]
        kinds = [_kind(each) for each in fields]
        if types.slates is not None or None in kinds:
            return None
        return cls(types, fields, [kind for kind in kinds if kind is not None])

    def decode(self, values: Sequence[bytes]) -> tuple[DecodedOutcomes, Flags]:
        """Decode outcomes, and tell which of them are usual; the rows of the others have no meaning."""
        n, fields = len(values), len(self._kinds)
        text = _bytes_of(b"".join([*values, bytes(SPARE)]))
        lengths = np.fromiter(map(len, values), np.int64, n)
        stops = np.cumsum(lengths)
        begins, ends, integers = np.zeros((3, fields, n), dtype=np.int64)
        numbers, features = np.zeros((fields, n)), np.zeros((n, self._types.features))
        usual = np.empty(n, dtype=np.bool_)
        scan(
            text,
            stops.astype(np.uint64),
            self._names,
            self._name_ends,
            self._kinds,
            self._nullable,
            self._most,
            begins,
            ends,
            integers,
            numbers,
            features,
            usual,
        )
        at = self._places
        for place, (least, most) in self._parsed.items():
            _parse(text, begins[place], ends[place], numbers[place], np.isnan(numbers[place]) & usual)
            usual &= (numbers[place] >= least) & (numbers[place] <= most)
        place = at["features"]
        _parse(text, begins[place], ends[place], features, (integers[place] == NOTHING) & usual)
        ids = [at["event_id"] + 1 + number for number in range(self._types.entities)]
        sequences = integers[at["prediction_sequence"]].tolist()
        found = DecodedOutcomes(
            integers[at["sequence"]].tolist(),
            sequences,
            [*sequences],
            tuple([_ids(text, begins[place], ends[place], usual) for place in ids]),
            integers[at["timestamp"]],
            integers[at["label_timestamp"]],
            integers[at["label"]] != NOTHING,
            numbers[at["watch_ratio"]] + 0.0,  # as `or 0.0` does, it makes 0 of what is negative and 0
            numbers[at["weight"]] if self._types.outcome.weighted else None,
            features,
            {},
            text,
            begins[at["event_id"]],
            ends[at["event_id"]],
            stops - lengths,
            stops,
            self._types.raw_outcomes.decode,
        )
        return found, usual


_scanner_of = cache(_Scanner.of)  # it never changes, and takes milliseconds to make


def _unwrapped(field: FieldInfo) -> tuple[inspect.Type, bool]:
    """Return the type of a field but for notes and null, and whether it may be null."""
    info = inspect.type_info(field.type)
    nullable = isinstance(info, inspect.UnionType) and info.includes_none
    if isinstance(info, inspect.UnionType) and nullable:
        others = tuple(each for each in info.types if not isinstance(each, inspect.NoneType))
        info = others[0] if len(others) == 1 else inspect.UnionType(others)
    return (info.type if isinstance(info, inspect.Metadata) else info), nullable


def _kind(field: FieldInfo) -> int | None:  # noqa: PLR0911 - one for each kind
    """Return the kind of a field; None for one that is not known here."""
    if field.type == Id:
        return ID
    match _unwrapped(field)[0]:
        case inspect.IntType(lt=None):
            return INTEGER
        case inspect.FloatType(gt=None, lt=None):
            return NUMBER
        case inspect.BoolType():
            return FLAG
        case inspect.LiteralType():
            return STATUS
        case inspect.ListType() if field.name == "features":
            return FEATURES
        case _:
            return None


def _parse(text: Bytes, begins: Integers, ends: Integers, numbers: Floats, flags: Flags) -> None:
    """Parse those numbers, or lists of numbers, that the scan has left to a parser."""
    rows = np.flatnonzero(flags)
    if len(rows):
        decode = _decode_numbers if numbers.ndim == 1 else _decode_rows
        numbers[rows] = np.array(decode_list(text, begins[rows], ends[rows], decode))


def _ids(text: Bytes, begins: Integers, ends: Integers, usual: Flags) -> list[Id]:
    """Decode ids; of outcomes that are not usual, it may be any."""
    if usual.all():
        return decode_list(text, begins, ends, _decode_ids)
    rows = np.flatnonzero(usual)
    found: list[Id] = [0] * len(usual)
    for row, each in zip(
        rows.tolist(), decode_list(text, begins[rows], ends[rows], _decode_ids), strict=True
    ):
        found[row] = each
    return found


def _bytes_of(text: bytes) -> Bytes:
    return np.frombuffer(text, dtype=np.uint8)


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    outcome = Outcome(
        "e", 7, 3, 5, 0.5, 0.6, True, [0.25] * FEATURES_LENGTH, 0, 9, 0.8, True, 6, True, 0.2, "labelled", 4
    )
    found = OutcomeDecoder(KUAIREC_TYPES).decode([encode(outcome)] * FEWEST)
    assert not found.records, "an outcome as workers write it is not usual"


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def scan(
    text: Bytes,
    stops: Offsets,
    names: Bytes,
    name_ends: Offsets,
    kinds: Integers,
    nullable: Flags,
    most: Integers,
    begins: Integers,
    ends: Integers,
    integers: Integers,
    numbers: Floats,
    features: Floats,
    usual: Flags,
) -> None:
    """Find the fields of outcomes.

    Parameters
    ----------
    text
        The outcomes, one behind the other, and `SPARE` bytes that are zero.
    stops
        Where each outcome ends, shape (n,).
    names
        What stands before each value, one behind the other, and `SPARE` bytes.
    name_ends
        Where each of these ends, shape (fields,).
    kinds, nullable, most
        The kind of each field, whether it may be null, and the largest whole number; shape (fields,).
    begins, ends
        Written: where the value of each field is in the text, shape (fields, n).
    integers
        Written: whole numbers and flags, `NOTHING` for null and for features that only a parser can tell;
        shape (fields, n).
    numbers
        Written: numbers, NaN where only a parser can tell, 0 for null; shape (fields, n).
    features
        Written: the features, shape (n, features).
    usual
        Written: whether all fields of an outcome were found, and nothing else; shape (n,).
    """
    begin = np.uint64(0)
    for row in range(len(stops)):
        end = _scan_outcome(
            text,
            begin,
            row,
            names,
            name_ends,
            kinds,
            nullable,
            most,
            begins,
            ends,
            integers,
            numbers,
            features,
        )
        # Whoever reads on into the next outcome ends behind this one.
        usual[row] = end == stops[row]
        begin = stops[row]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _scan_outcome(
    text: Bytes,
    at: np.uint64,
    row: int,
    names: Bytes,
    name_ends: Offsets,
    kinds: Integers,
    nullable: Flags,
    most: Integers,
    begins: Integers,
    ends: Integers,
    integers: Integers,
    numbers: Floats,
    features: Floats,
) -> np.uint64:
    """Find the fields of an outcome, and return where it ends."""
    name = np.uint64(0)
    for field in range(len(kinds)):
        begin = _behind(text, at, names, name, name_ends[field])
        if begin == _ABSENT:
            return _ABSENT
        name, kind = name_ends[field], kinds[field]
        integer, number = NOTHING, 0.0
        if nullable[field] and text[begin] == _N:
            at = _behind(text, begin, _LITERALS, _NULL, _TRUE)
        elif kind == ID:
            at = _id_end(text, begin)
        elif kind == INTEGER:
            at, integer = _integer(text, begin)
            if integer > most[field]:
                return _ABSENT
        elif kind == NUMBER:
            at, number = _number(text, begin)
            integer = 0
        elif kind == FEATURES:
            at, integer = _features(text, begin, features, row)
        elif kind == FLAG:
            integer = int(text[begin] == _T)
            word, word_end = (_TRUE, _FALSE) if integer else (_FALSE, _LABELLED)
            at = _behind(text, begin, _LITERALS, word, word_end)
        else:
            at = _behind(text, begin, _LITERALS, _LABELLED, _EXPIRED)
            if at == _ABSENT:
                at = _behind(text, begin, _LITERALS, _EXPIRED, _LITERALS_END)
        if at == _ABSENT:
            return _ABSENT
        begins[field, row], ends[field, row] = begin, at
        integers[field, row], numbers[field, row] = integer, number
    return at + _ONE if text[at] == _BRACE else _ABSENT


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _behind(text: Bytes, at: np.uint64, words: Bytes, begin: np.uint64, end: np.uint64) -> np.uint64:
    """Return where a word ends that stands at a place of a text, `_ABSENT` if it does not."""
    length = end - begin
    for offset in range(np.uint64(0), length, _WORD):
        other = load_word(text, at + offset) ^ load_word(words, begin + offset)
        if length - offset < _WORD:
            other <<= _WORD_BITS - _BYTE_BITS * (length - offset)
        if other:
            return _ABSENT
    return at + length


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _id_end(text: Bytes, at: np.uint64) -> np.uint64:
    """Return where an id ends, `_ABSENT` if it is none or has another text when it is encoded again."""
    if text[at] != _QUOTE:
        negative = text[at] == _MINUS
        if negative and text[at + _ONE] == _ZERO:
            return _ABSENT
        end, _ = _integer(text, at + np.uint64(negative))
        return end
    begin = at
    at += _ONE
    while text[at] != _QUOTE:
        if text[at] < _SPACE or text[at] == _BACKSLASH or text[at] > _TILDE:
            return _ABSENT
        at += _ONE
    at += _ONE
    return at if _NO_ID < at - begin <= _LONGEST_ID else _ABSENT


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _integer(text: Bytes, at: np.uint64) -> tuple[np.uint64, int]:
    """Return where a whole number without a sign ends, and the number."""
    end, number = _digits(text, at, np.uint64(0))
    digits = end - at
    if digits == 0 or digits > MAX_DIGITS or (digits > 1 and text[at] == _ZERO):
        return _ABSENT, 0
    return end, int(np.int64(number))


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _features(text: Bytes, at: np.uint64, features: Floats, row: int) -> tuple[np.uint64, int]:
    """Write features; return where their list ends, and `NOTHING` if only a parser can tell one."""
    found, sign = 0, _OPEN
    for place in range(features.shape[1]):
        if text[at] != sign:
            return _ABSENT, NOTHING
        at, number = _number(text, at + _ONE)
        if at == _ABSENT:
            return _ABSENT, NOTHING
        if np.isnan(number):
            found = NOTHING
        features[row, place] = number
        sign = _COMMA
    return (at + _ONE, found) if text[at] == _CLOSE else (_ABSENT, NOTHING)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _number(text: Bytes, at: np.uint64) -> tuple[np.uint64, float]:
    """Return where a number ends, and the number, NaN if only a parser can tell it.

    Clinger, "How to read floating point numbers accurately", PLDI 1990: the quotient of two floats that are
    exact is the float next to the number. That of a longer number takes more.
    """
    start, negative = at, text[at] == _MINUS
    if negative:
        at += _ONE
    if (
        text[at + _ONE] == _DOT and _ZERO <= text[at] <= _NINE
    ):  # as mostly: no need to wait for what `_digits` finds
        end, mantissa, digits = at + _ONE, np.uint64(text[at]) - np.uint64(_ZERO), _ONE
    else:
        end, mantissa = _digits(text, at, np.uint64(0))
        digits = end - at
        if digits == 0 or (digits > 1 and text[at] == _ZERO):
            return _ABSENT, np.nan
    power, exact = np.uint64(0), not negative
    if text[end] == _DOT:
        at = end + _ONE
        end, mantissa = _digits(text, at, mantissa)
        power = end - at
        if power == 0:
            return _ABSENT, np.nan
        digits, exact = digits + power, True
    if text[end] == _LOWER_E or text[end] == _UPPER_E:
        at = end + _ONE
        exact = exact and text[at] == _MINUS
        at += np.uint64(text[at] == _MINUS or text[at] == _PLUS)
        end, exponent = _digits(text, at, np.uint64(0))
        if not 0 < end - at <= MAX_EXPONENT_DIGITS:
            return _ABSENT, np.nan
        power += exponent
    if end - start > MAX_NUMBER:
        return _ABSENT, np.nan
    if not exact or digits > MAX_DIGITS or power > MAX_EXACT_POWER:
        return end, np.nan
    if digits <= MAX_EXACT_DIGITS:
        value = np.float64(np.int64(mantissa)) / _POWERS[power]
    else:
        value = exact_quotient(np.int64(mantissa), _POWERS[power])
    return end, -value if negative else value


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _digits(text: Bytes, at: np.uint64, number: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Append the digits at a place of a text to a number; return where they end, and the number.

    Eight bytes are read together: a byte without its zero is below ten if it is a digit. Beyond 19 digits the
    number has no meaning.
    """
    while True:
        word = load_word(text, at) ^ _ZEROS
        others = (word | (word + _ABOVE_NINE)) & _HIGH_BITS  # right up to the first byte that is no digit
        count = np.uint64(lowest_bit(others)) // _BYTE_BITS if others else _WORD
        if count == 0:
            return at, number
        word <<= _WORD_BITS - _BYTE_BITS * count
        # Pairs of digits, of pairs, and of those.
        word = ((word * np.uint64(10)) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
        word = ((word * np.uint64(100)) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
        word = ((word * np.uint64(10_000)) + (word >> np.uint64(32))) & np.uint64(0x00000000FFFFFFFF)
        number = number * _WHOLE_POWERS[count] + word
        at += count
        if others:
            return at, number
