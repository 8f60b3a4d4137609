"""Check messages against the definition of their stream, field by field: no Kafka, no clock."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from pipeline.config.pointer import parts_of
from pipeline.config.settings import Join
from pipeline.config.stream import InputDefinition, LabelDefinition, Stream, TimeUnit
from pipeline.config.target_settings import BinarySettings, RegressionSettings
from pipeline.features.live_tables import TableFeatures, TableRecord, tables_of
from pipeline.features.targets import target_of
from pipeline.join.identity import Identify, Identity, identify_by
from pipeline.records.decoding import NO_TIMESTAMP, InputDecoder, RejectedRecord, decode
from pipeline.records.fields import Id
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import Interaction, Label, RawMessage, Slate
from pipeline.task.input_clock import InputClock
from pipeline.truncate import shown, truncate

MAX_REASONS: Final = 20
"""Different reasons for which messages cannot be used that are told, at most."""
MAX_EXAMPLE: Final = 200
"""Characters of an example, at most."""
_LEAST_TIMES: Final[tuple[tuple[float, TimeUnit | None], ...]] = (
    (1e17, None),
    (1e14, "us"),
    (1e11, "ms"),
    (1e8, "s"),
)
"""Times of 1973 in each unit; numbers from the first on are no times."""
_KINDS: Final[Mapping[type, str]] = MappingProxyType(
    {
        type(None): "null",
        bool: "boolean",
        int: "whole number",
        float: "number",
        str: "text",
        list: "list",
        dict: "object",
    }
)
"""What the kinds of values in JSON are called."""
_MISSING: Final = object()
MOSTLY: Final = 10
"""At most one of so many labels may be beyond the cap without a remark."""


class Sample(NamedTuple):
    """Messages of both inputs, and of the live tables by name."""

    interactions: Sequence[RawMessage]
    labels: Sequence[RawMessage]
    tables: Mapping[str, Sequence[RawMessage]] = MappingProxyType({})


class Field(msgspec.Struct, frozen=True, omit_defaults=True):
    """A field of an input's messages."""

    name: str
    """The setting that says where it is."""
    pointer: str
    found: int
    """Messages that have it."""
    kinds: dict[str, int]
    """Messages by the kind of its value."""
    example: str | None
    """Its value in the first message that has it, as JSON, cut to `MAX_EXAMPLE` characters."""
    items: int | None = None
    """Items of slates in which it was looked for, in place of messages. Absent where it is not of an item."""


class Reason(msgspec.Struct, frozen=True):
    """Why messages cannot be used."""

    fault: str
    messages: int
    reason: str
    """Of the first of them."""
    partition: int
    offset: int


class InputCheck(msgspec.Struct, frozen=True):
    """The messages of one input."""

    topic: str
    messages: int
    usable: int
    first: int | None
    """Earliest time of those that can be used, in milliseconds."""
    last: int | None
    fields: list[Field]
    reasons: list[Reason]


class StreamCheck(msgspec.Struct, frozen=True):
    """What fits a definition, and what does not."""

    stream: str
    interactions: InputCheck
    labels: InputCheck
    joined: int
    """Labels of events that are among the interactions."""
    positive: int
    """Labels that are positive; for a regression target, those above its offset."""
    offset: float | None
    """`target.offset` of a regression target, else None."""
    remarks: list[str]
    """What does not look right, and what to do."""
    tables: dict[str, InputCheck] = {}
    """The records of each live table, by name."""

    @property
    def fits(self) -> bool:
        """Whether every message can be used, and nothing looks wrong."""
        inputs = (self.interactions, self.labels, *self.tables.values())
        return not (self.remarks or any(each.reasons for each in inputs))


def check(
    stream: Stream,
    decoders: InputDecoders,
    sample: Sample,
    topics: tuple[str, str],
    latest: int,
    *,
    join: Join | None = None,
) -> StreamCheck:
    """Check messages against a definition.

    Parameters
    ----------
    stream
        Definition of the stream.
    decoders
        Decoders of its inputs.
    sample
        Messages of the inputs.
    topics
        Names of the topics of interactions and labels.
    latest
        Largest time to accept, in milliseconds.
    join
        Says which times are of a wrong clock; by default the usual settings.

    Returns
    -------
    StreamCheck
        What fits, and what does not.
    """
    interactions, labels = (
        _judged(_decoded(messages, decoder, latest), join or Join())
        for messages, decoder in (
            (sample.interactions, decoders.interactions),
            (sample.labels, decoders.labels),
        )
    )
    # The first of an event counts, as in a worker; later ones are duplicates.
    identify = identify_by(stream.item_entities)
    items = [each for _, record in interactions for each in _items(record)]
    events = {identify(each): each for each in reversed(items)}
    usable = [record for _, record in labels if isinstance(record, Label)]
    target = target_of(stream.target)
    positive = sum(target.is_positive(label.watch_ratio) for label in usable)
    joined = sum(identify(label) in events for label in usable)
    tables = {each.name: _table(stream, each, sample.tables.get(each.name, ())) for each in tables_of(stream)}
    remarks = [
        *_units("interactions", stream.interactions, sample.interactions, decoders.interactions),
        *_units("labels", stream.labels, sample.labels, decoders.labels),
        *_repeated(items, identify),
        *_joins(usable, events, joined, identify),
        *_targets(stream, [label.watch_ratio for label in usable]),
        *_weights(usable),
    ]
    return StreamCheck(
        stream.name,
        _input(topics[0], stream, stream.interactions, interactions, decoders.interactions),
        _input(topics[1], stream, stream.labels, labels, decoders.labels),
        joined,
        positive,
        stream.target.offset if isinstance(stream.target, RegressionSettings) else None,
        remarks,
        tables,
    )


_Decoded = Sequence[tuple[RawMessage, Interaction | Label | TableRecord | RejectedRecord]]


def _table(stream: Stream, table: TableFeatures, messages: Sequence[RawMessage]) -> InputCheck:
    """Check the records of a live table."""
    decoded = [(each, table.decode(each.key, each.value, NO_TIMESTAMP)) for each in messages]
    usable = [record for _, record in decoded if not isinstance(record, RejectedRecord)]
    times = [record.timestamp for record in usable if record.timestamp != NO_TIMESTAMP]
    definition, objects = stream.tables[table.name], [_object(each.value) for each in messages]
    return InputCheck(
        messages[0].topic if messages else definition.topic,
        len(messages),
        len(usable),
        min(times, default=None),
        max(times, default=None),
        [_field(name, pointer, objects) for name, pointer in definition.pointers()],
        list(_reasons(decoded)),
    )


def _object(value: bytes | None) -> object:
    try:
        return msgspec.json.decode(value or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _decoded(
    messages: Sequence[RawMessage], decoder: InputDecoder[Any], latest: int
) -> list[tuple[RawMessage, Interaction | Label | RejectedRecord]]:
    keys, values = [message.key for message in messages], [message.value for message in messages]
    return list(zip(messages, decode(keys, values, decoder, latest), strict=True))


def _judged(
    decoded: list[tuple[RawMessage, Interaction | Label | RejectedRecord]], join: Join
) -> list[tuple[RawMessage, Interaction | Label | RejectedRecord]]:
    """Return messages with what the clocks of their partitions refuse."""
    judged = [*decoded]
    partitions: dict[int, list[int]] = {}
    for row in sorted(range(len(decoded)), key=lambda row: decoded[row][0].offset):
        partitions.setdefault(decoded[row][0].partition, []).append(row)
    for rows in partitions.values():
        records = [decoded[row][1] for row in rows]
        times = [NO_TIMESTAMP if isinstance(each, RejectedRecord) else each.timestamp for each in records]
        verdicts = InputClock(join.max_jump, join.max_behind).judge(times, present=0)
        for row, refused in zip(rows, verdicts, strict=True):
            if refused is not None:
                judged[row] = decoded[row][0], refused
    return judged


def _input(
    topic: str,
    stream: Stream,
    definition: InputDefinition,
    decoded: Sequence[tuple[RawMessage, Interaction | Label | RejectedRecord]],
    decoder: InputDecoder[Any],
) -> InputCheck:
    objects = [_parsed(message, decoder) for message, _ in decoded]
    times = [record.timestamp for _, record in decoded if not isinstance(record, RejectedRecord)]
    return InputCheck(
        topic,
        len(decoded),
        len(times),
        min(times, default=None),
        max(times, default=None),
        [
            _field_of(name, pointer, stream, definition, objects)
            for name, pointer in _pointers(stream, definition)
        ],
        list(_reasons(decoded)),
    )


def _field_of(
    name: str, pointer: str, stream: Stream, definition: InputDefinition, messages: Sequence[object]
) -> Field:
    """Return the field of a setting, which messages have, or the items of slates."""
    if definition is not stream.interactions or not stream.is_item_field(name):
        return _field(name, pointer, messages)
    lists = (_at(each, stream.interactions.items or "") for each in messages)
    items = [item for each in lists if isinstance(each, list) for item in each]
    return msgspec.structs.replace(_field(name, pointer, items), items=len(items))


def _pointers(stream: Stream, definition: InputDefinition) -> Iterator[tuple[str, str]]:
    """Yield the pointers that the messages of an input have to have, with their names."""
    pointers = dict(stream.pointers(definition))
    first = ["event_id", *(f"entities.{name}" for name in stream.entities)]
    for name in first:
        yield name, pointers.pop(name)
    yield from pointers.items()


def _parsed(message: RawMessage, decoder: InputDecoder[Any]) -> object:
    try:
        return decoder.parse(message.value or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _at(value: object, pointer: str) -> object:
    """Return what is at a pointer; `_MISSING` if nothing is."""
    for part in parts_of(pointer):
        if not isinstance(value, Mapping) or part not in value:
            return _MISSING
        value = value[part]
    return value


def _field(name: str, pointer: str, objects: Iterable[object]) -> Field:
    values = [value for value in (_at(each, pointer) for each in objects) if value is not _MISSING]
    kinds = Counter(_KINDS[type(value)] for value in values)
    return Field(name, pointer, len(values), dict(kinds), _json(values[0]) if values else None)


def _json(value: object) -> str:
    return truncate(json.dumps(value), MAX_EXAMPLE)


def _reasons(decoded: _Decoded) -> Iterator[Reason]:
    """Yield why messages cannot be used, those of the most messages first."""
    found: dict[tuple[str, str], tuple[RawMessage, str]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for message, record in decoded:
        if isinstance(record, RejectedRecord):
            # The reasons of msgspec name fields; the others name values, so that each is another one.
            key = record.fault.value, record.reason if record.fault.value == "invalid" else ""
            counts[key] += 1
            found.setdefault(key, (message, record.reason))
    for key, count in counts.most_common(MAX_REASONS):
        message, reason = found[key]
        yield Reason(key[0], count, reason, message.partition, message.offset)


def unit_of(time: object) -> TimeUnit | None:
    """Return the unit that a time since 1973 seems to be in; None if there is none.

    Examples
    --------
    >>> unit_of(1_772_366_400), unit_of(1_772_366_400_250), unit_of("2026-03-01T12:00:00Z"), unit_of(5)
    ('s', 'ms', 'iso8601', None)
    """
    if isinstance(time, str):
        return "iso8601" if time[:4].isdecimal() and time[4:5] == "-" else None
    if isinstance(time, bool) or not isinstance(time, int | float):
        return None
    return next((unit for least, unit in _LEAST_TIMES if time >= least), None)


def _units(
    name: str, definition: InputDefinition, messages: Sequence[RawMessage], decoder: InputDecoder[Any]
) -> Iterator[str]:
    """Yield a remark if most times seem to be in another unit than said; a schema may say it better."""
    if definition.format in {"avro", "protobuf"}:
        return
    times = [_at(_parsed(message, decoder), definition.time) for message in messages]
    units = Counter(unit for unit in map(unit_of, times) if unit is not None)
    if not units:
        return
    [(unit, count)] = units.most_common(1)
    if unit != definition.time_unit and 2 * count > len(messages):
        example = next(time for time in times if unit_of(time) == unit)
        yield (
            f"times of {name} look like {unit}, such as {shown(example)}, and are said to be "
            f'{definition.time_unit}: set {name}.time_unit = "{unit}"'
        )


def _items(record: Interaction | Label | RejectedRecord) -> Sequence[Interaction]:
    """Return the items of an interaction, which may be a slate; none of what is no interaction."""
    if isinstance(record, Slate):
        return record.items
    return [record] if isinstance(record, Interaction) else []


def _repeated(interactions: Iterable[Interaction], identify: Identify) -> Iterator[str]:
    """Yield a remark if an event id stands for different events."""
    known: dict[Identity, tuple[Id, ...]] = {}
    for record in interactions:
        event, ids = identify(record), record.ids
        if known.setdefault(event, ids) != ids:
            yield (
                f"event {shown(record.event_id)} has different ids in two messages: {shown(ids)} and "
                f"{shown(known[event])}. An event id has to be unique: point "
                "interactions.event_id and labels.event_id to one that is"
            )
            return


def _joins(
    labels: Sequence[Label], events: Mapping[Identity, Interaction], joined: int, identify: Identify
) -> Iterator[str]:
    """Yield a remark if labels do not find their events, or are of other ids."""
    if labels and events and not joined:
        yield (
            f"none of {len(labels)} labels is of an event that was read, such as event "
            f"{shown(labels[0].event_id)}: look whether both event ids are the same, or read more messages"
        )
    for label in labels:
        event = events.get(identify(label))
        ids = label.ids
        if event is not None and event.ids != ids:
            yield (
                f"the label of event {shown(label.event_id)} is of {shown(ids)}, its interaction of "
                f"{shown(event.ids)}: such a label becomes a dead letter"
            )
            return


def _targets(stream: Stream, values: Sequence[float]) -> Iterator[str]:
    """Yield a remark if the labels do not suit the target."""
    if isinstance(stream.target, RegressionSettings):
        yield from _numbers(stream.target, values)
    else:
        yield from _positives(stream.target, stream.labels, values)


def _positives(target: BinarySettings, labels: LabelDefinition, values: Sequence[float]) -> Iterator[str]:
    """Yield a remark if all labels are positive, or none."""
    positive = sum(value > target.above for value in values)
    if values and positive in {0, len(values)}:
        which = "none" if positive == 0 else "each"
        yield (
            f"{which} of {len(values)} labels is above {target.above:g}, so there is nothing to tell "
            "apart: look at labels.value and target.above"
        )
    if labels.value_kind == "boolean" and not 0.0 <= target.above < 1.0:
        yield f"true counts as 1, which is not above target.above = {target.above:g}: set it to 0.5"


def _weights(labels: Sequence[Label]) -> Iterator[str]:
    """Yield a remark if no label has a weight."""
    if labels and not any(label.weight for label in labels):
        yield (
            f"each of {len(labels)} labels has the weight 0, so nothing would be learned: look at "
            "labels.weight and labels.weights"
        )


def _numbers(target: RegressionSettings, values: Sequence[float]) -> Iterator[str]:
    """Yield a remark if the labels are all the same, or mostly beyond the cap."""
    if not values:
        return
    if min(values) == max(values):
        yield f"each of {len(values)} labels is {values[0]:g}: look at labels.value"
        return
    beyond = sum(abs(value - target.offset) > target.cap for value in values)
    if MOSTLY * beyond > len(values):
        low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
        yield (
            f"{beyond} of {len(values)} labels are further than target.cap = {target.cap:g} from "
            f"target.offset = {target.offset:g} and count as so far; half of the labels are below "
            f"{middle:g}, 80% between {low:g} and {high:g}: set offset to a usual label and cap to the "
            "largest distance that is meant"
        )
