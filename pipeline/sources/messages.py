"""Messages of a stream's inputs, made from rows of events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from pipeline.config.pointer import nested, parts_of
from pipeline.config.stream import KUAIREC, WEIGHT, InputDefinition, Stream
from pipeline.config.stream_features import DerivedFeature
from pipeline.records.encoding import encode
from pipeline.records.entities import entity_fields
from pipeline.records.input_times import clock_writer, time_writer
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.sources.kuairec import ITEMS


class MessageWriter(Protocol):
    """What makes the messages of an event."""

    @property
    def columns(self) -> Sequence[str]:
        """Return the columns of the rows that it makes them from.

        Among them are event_id, and timestamp and label_timestamp in milliseconds.
        """

    @property
    def key_column(self) -> str:
        """Return the column whose value is the messages' key."""

    def interaction(self, row: Sequence[Any]) -> bytes:
        """Return the value of the interaction."""

    def label(self, row: Sequence[Any]) -> bytes:
        """Return the value of the label."""


def writer_of(stream: Stream) -> MessageWriter:
    """Return what makes the messages of a stream whose inputs are in JSON."""
    return _KuaiRecWriter() if stream == KUAIREC else StreamWriter(stream)


class _KuaiRecWriter:
    """What makes KuaiRec's messages."""

    columns = (
        *("event_id", "user_id", "video_id", "timestamp", "label_timestamp"),
        *("play_duration", "video_duration", "watch_ratio"),
    )
    key_column = "user_id"

    def interaction(self, row: Sequence[Any]) -> bytes:
        event_id, user_id, video_id, timestamp, _, _, duration, _ = row
        return encode(KuaiRecInteraction(event_id, user_id, video_id, timestamp, duration))

    def label(self, row: Sequence[Any]) -> bytes:
        event_id, user_id, video_id, _, known, played, _, ratio = row
        return encode(WatchLabel(event_id, user_id, video_id, known, played, ratio))


class StreamWriter:
    """What makes the messages of a stream, each field where its definition says.

    Parameters
    ----------
    stream
        Definition of the stream.

    Examples
    --------
    >>> StreamWriter(KUAIREC).label(["e1", 7, 3, 5, 9, 0.5, 900.0, 450.0])
    b'{"event_id":"e1","user_id":7,"video_id":3,"timestamp":9,"play_duration":450.0,"watch_ratio":0.5}'
    """

    def __init__(self, stream: Stream) -> None:
        interactions, labels = stream.interactions, stream.labels
        numbers = [f"interactions.{name}" for name in interactions.numbers]
        numbers += [f"labels.{name}" for name in labels.numbers]
        ids = entity_fields(len(stream.entities))
        features = [name for name, each in stream.features.items() if not isinstance(each, DerivedFeature)]
        self.columns: Sequence[str] = (
            *((ITEMS,) if stream.has_slates else ()),
            *("event_id", *ids, "timestamp", "label_timestamp", "watch_ratio"),
            *numbers,
            *(f"features.{name}" for name in features),
            *(f"interactions.{name}" for name in interactions.carried),
            *(() if labels.weight is None else (WEIGHT,)),
            *(("signal",) if labels.value_kind == "signal" else ()),
        )
        self.key_column = "event_id" if stream.key_entity is None else ids[stream.key_entity]
        value: tuple[str, Callable[[Any], object]] = ("watch_ratio", float)
        if labels.value_kind != "number":
            value = ("watch_ratio", bool) if labels.value_kind == "boolean" else ("signal", _same)
        fields = self._fields(stream, interactions, "interactions", "timestamp")
        fields += [
            (parts_of(each.field), self.columns.index(f"features.{name}"), _same)
            for name, each in stream.features.items()
            if not isinstance(each, DerivedFeature)
        ]
        fields += [
            (parts_of(pointer), self.columns.index(f"interactions.{name}"), float)
            for name, pointer in interactions.carried.items()
        ]
        own = {self.columns.index(name) for name in item_columns(stream)}
        self._interaction = [field for field in fields if field[1] not in own]
        if interactions.items is not None:
            within = [(parts, self.columns[place]) for parts, place, _ in fields if place in own]
            self._interaction.append((parts_of(interactions.items), 0, partial(_items, within)))
        self._label = self._fields(stream, labels, "labels", "label_timestamp")
        column, make = value
        self._label.append((parts_of(labels.value), self.columns.index(column), make))
        if labels.weight is not None:
            self._label.append((parts_of(labels.weight), self.columns.index(WEIGHT), float))

    def _fields(
        self, stream: Stream, definition: InputDefinition, name: str, time: str
    ) -> list[tuple[tuple[str, ...], int, Callable[[Any], object]]]:
        """Return where each field goes in a message, its place in a row, and what converts it."""
        clock = definition.time_of_day
        fields = [
            (definition.event_id, "event_id", _same),
            *((pointer, f"entity_{n}", _same) for n, pointer in enumerate(stream.entities.values())),
            (definition.time, time, time_writer(definition, day=clock is not None)),
            *((each, time, clock_writer(definition)) for each in [clock] if each is not None),
            *((pointer, f"{name}.{number}", _same) for number, pointer in definition.numbers.items()),
        ]
        return [(parts_of(pointer), self.columns.index(column), make) for pointer, column, make in fields]

    def interaction(self, row: Sequence[Any]) -> bytes:
        """Return the value of the interaction."""
        return _message(self._interaction, row)

    def label(self, row: Sequence[Any]) -> bytes:
        """Return the value of the label."""
        return _message(self._label, row)


def item_columns(stream: Stream) -> list[str]:
    """Return the columns of what each item of a slate has; none where interactions are single items.

    Examples
    --------
    >>> item_columns(KUAIREC)
    []
    """
    names = stream.interactions.item_fields
    ids = zip(entity_fields(len(stream.entities)), stream.entities, strict=True)
    return [
        *(column for column, name in ids if name in names),
        *(f"interactions.{name}" for name in stream.interactions.numbers if name in names),
        *(f"features.{name}" for name in stream.features if name in names),
        *(f"interactions.{name}" for name in stream.interactions.carried if name in names),
    ]


def _items(fields: Sequence[tuple[tuple[str, ...], str]], rows: Sequence[Mapping[str, Any]]) -> object:
    """Return the items of a slate, each with its fields."""
    return [nested((parts, row[name]) for parts, name in fields if row[name] is not None) for row in rows]


def _same(value: object) -> object:
    return value


def _message(
    fields: Sequence[tuple[tuple[str, ...], int, Callable[[Any], object]]], row: Sequence[Any]
) -> bytes:
    given = ((parts, make(row[place])) for parts, place, make in fields if row[place] is not None)
    return encode(nested(given))
