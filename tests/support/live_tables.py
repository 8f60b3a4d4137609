"""A stream with live tables, and its plain reference: all records in the order of time, and dictionaries."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pipeline.config.feature_layout import ADJUSTED
from pipeline.config.settings import Join, Learner
from pipeline.config.stream import Stream
from pipeline.features.event_features import bucket_of
from pipeline.features.feature_set import FeatureSet
from pipeline.features.live_tables import Rows
from pipeline.features.tables import Tables
from pipeline.features.targets import target_of
from pipeline.join.spill import SpilledPredictions
from pipeline.model.learner_settings import learner_settings
from pipeline.model.model import Model
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import RawMessage
from pipeline.task.live_tables import LiveTable
from pipeline.task.record_queue import Position
from pipeline.task.task import Task
from tests.support.builders import join_settings
from tests.support.entries import delivered

LATEST = 10**9
LEARNING = Learner.model_validate({"budget": 4, "landmarks": 2, "rank": 2, "cycle": 3})


def stream_of(**changes: Any) -> Stream:
    """Return a stream with a table of items, and one of couriers."""
    price = {"kind": "number", "field": "/price", "log": True, "clip": [0.0, 100.0]}
    items = {
        "topic": "items",
        "entity": "item",
        "id": "/id",
        "time": "/at",
        "max_rows": 3,
        "features": {
            "price": price,
            "sold": {"kind": "boolean", "field": "/sold", "missing": True},
            "genre": {"kind": "category", "field": "/genre", "columns": 4, "missing": "none"},
            "place": {"kind": "vector", "field": "/place", "length": 2, "missing": 0.5},
        },
    }
    couriers = {
        "topic": "couriers",
        "entity": "courier",
        "features": {"speed": {"kind": "number", "field": "/speed"}},
    }
    message = {"event_id": "/event", "time": "/at"}
    return Stream.model_validate(
        {
            "name": "deliveries",
            "entities": {"courier": "/courier", "item": "/item"},
            "interactions": {"topic": "orders", **message},
            "labels": {"topic": "arrivals", **message, "value": "/late"},
            "target": {"name": "late", "above": 0.5, "cap": 1.0, "scale": 0.5},
            "features": {"load": {"kind": "number", "field": "/load"}},
            "tables": {"items": items, "couriers": couriers},
            "effects": ["courier", "item"],
            "running": {
                "courier": {"half_life": "50s", "features": [*ADJUSTED, "recent_residual"]},
                "item": {"half_life": "1m", "features": [*ADJUSTED, "log_recent_count"]},
                "newest": {"of": ["courier"], "half_life": "5s", "features": ["recent_residual"]},
                "taste": {"of": ["courier", "items_price"]},
                "load": {"half_life": "1m", "features": ["label_mean", "recent_residual"]},
            },
        }
        | changes
    )


STREAM = stream_of()
FEATURES = FeatureSet.of(STREAM)
DECODERS = InputDecoders.of(STREAM)


class Given(NamedTuple):
    """A message, and the time at which the merge takes it."""

    source: RawMessage
    time: int


def new_model() -> Model:
    return Model(
        learner_settings(LEARNING, 0, features=FEATURES),
        Tables(),
        50,
        features=FEATURES,
        target=target_of(STREAM.target),
    )


def new_task(
    partition: int = 0, join: Join | None = None, *, spilled: SpilledPredictions | None = None
) -> Task:
    """Return a task of the stream, with empty tables."""
    tables = [LiveTable(Rows(each)) for each in FEATURES.tables]
    model, settings = new_model(), join or join_settings()
    return Task(partition, model, settings, Position(0), Position(0), tables=tables, spilled=spilled)


def event(  # noqa: PLR0917 - what a message says
    topic: str, number: int, at: int, courier: str, item: int, offset: int, late: float | None = None
) -> Given:
    """Return an order, or its arrival, which is late if its number is odd, unless it is said."""
    value = {"event": f"e{number}", "courier": courier, "item": item, "at": at, "load": number % 3}
    value |= {"late": float(number % 2) if late is None else late}
    return Given(RawMessage(topic, 0, offset, courier.encode(), json.dumps(value).encode()), at)


@dataclass
class Reference:
    """Takes the earliest message of all heads, tables first, and keeps rows in dictionaries."""

    rows: dict[str, dict[str, list[float]]] = field(default_factory=lambda: {"items": {}, "couriers": {}})
    offsets: dict[str, int] = field(default_factory=lambda: {"items": 0, "couriers": 0})
    faults: list[tuple[str, int, str]] = field(default_factory=list)
    """Topic, offset and fault of what cannot be used."""
    found: dict[str, tuple[list[float], dict[str, int]]] = field(default_factory=dict)
    """Of each event, the features of the tables and how far they were applied."""

    def run(self, tables: dict[str, Sequence[Given]], labels: list[Given], orders: list[Given]) -> None:
        heads = [deque(each) for each in (*tables.values(), labels, orders)]
        names = [*tables, "labels", "orders"]
        while any(heads):
            place = min((n for n, head in enumerate(heads) if head), key=lambda n: heads[n][0].time)
            source, _ = heads[place].popleft()
            if names[place] == "orders":
                order = json.loads(source.value or b"")
                self.found[order["event"]] = self._features(order), dict(self.offsets)
            elif names[place] in self.rows:
                self._apply(names[place], source)

    def _features(self, order: dict[str, Any]) -> list[float]:
        genre = float(bucket_of("none", 4))
        item = self.rows["items"].get(str(order["item"]), [0.0, 0.0, 1.0, genre, 0.5, 0.5])
        return [*item, *self.rows["couriers"].get(order["courier"], [0.0, 0.0])]

    def _apply(self, name: str, source: RawMessage) -> None:
        rows, key = self.rows[name], (source.key or b"").decode()
        fault = self._fault(name, key, source.value)
        if fault is not None:
            self.faults.append((name, source.offset, fault))
        elif source.value is None:
            rows.pop(key, None)
        else:
            rows[key] = _row(name, json.loads(source.value))
        self.offsets[name] = source.offset + 1

    def _fault(self, name: str, key: str, value: bytes | None) -> str | None:
        if not key:
            return "wrong_key"
        if value is None:
            return None
        try:
            record = json.loads(value, parse_constant=_refuse)
        except ValueError:
            return "undecodable"
        if not isinstance(record, dict) or not isinstance(record.get(_NEEDED[name]), float):
            return "invalid"
        if name == "items" and str(record["id"]) != key:
            return "wrong_key"
        return (
            "table_full"
            if name == "items" and key not in self.rows[name] and len(self.rows[name]) >= 3
            else None
        )


def _refuse(constant: str) -> None:
    raise ValueError(f"JSON has no {constant}")


_NEEDED = {"items": "price", "couriers": "speed"}


def _row(name: str, record: dict[str, Any]) -> list[float]:
    if name == "couriers":
        return [1.0, record["speed"]]
    price = round(math.log1p(min(max(record["price"], 0.0), 100.0)), 6)
    genre = float(bucket_of(record.get("genre", "none"), 4))
    return [1.0, price, float(record.get("sold", True)), genre, *record.get("place", [0.5, 0.5])]


def feed_table(table: LiveTable, given: Sequence[Given]) -> None:
    """Give a table messages, as its reader does."""
    messages = [delivered(each.source) for each in given]
    table.feed(messages, [table.features.decode(s.key, s.value, time) for s, time in given])
