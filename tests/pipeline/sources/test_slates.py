"""Slates from tables: the rows of an event are its items."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.stream import Stream
from pipeline.errors import ConfigError, DataError
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import Slate
from pipeline.sources.kuairec import Events
from pipeline.sources.messages import writer_of
from pipeline.sources.rows import read_rows
from pipeline.sources.schedule import Schedule, order_of
from tests.pipeline.sources.test_rows import written
from tests.support.examples import examples

DEFINITION: dict[str, Any] = {
    "name": "shelves",
    "entities": {"user": "/who/user", "product": "/product/id"},
    "interactions": {
        "topic": "shown",
        "event_id": "/shelf",
        "time": "/at",
        "items": "/page/shown",
        "item_fields": ["product", "price", "size", "vector"],
        "max_items": 3,
        "numbers": {"size": "/product/size", "width": "/width"},
    },
    "labels": {
        "topic": "clicks",
        "event_id": "/shelf",
        "time": "/known",
        "value": "/clicked",
        "value_kind": "boolean",
        "weight": "/worth",
        "numbers": {"seconds": "/seconds"},
    },
    "target": {"name": "clicked", "above": 0.5, "cap": 1.0, "scale": 0.5},
    "features": {
        "price": {"kind": "number", "field": "/price", "missing": 0.0},
        "vector": {"kind": "vector", "field": "/vector", "length": 2, "missing": 0.0},
        "phone": {"kind": "boolean", "field": "/phone"},
    },
}
SHELVES = Stream.model_validate(DEFINITION)


def row(shelf: Any, at: int, product: Any, clicked: bool = False, **changes: Any) -> dict[str, Any]:
    return {
        "shelf": shelf,
        "who.user": f"u{shelf}",
        "product.id": product,
        "product.size": 1.0,
        "width": 2.0,
        "price": 1.5,
        "vector": [0.5, 1.0],
        "phone": True,
        "at": at,
        "known": at + 10,
        "clicked": clicked,
        "worth": 2.0,
        "seconds": 3.0,
    } | changes


def read(folder: Path, rows: list[dict[str, Any]], stream: Stream = SHELVES) -> Events:
    return read_rows(written(folder, rows, "rows.parquet"), stream, 0)


def messages(events: Events, stream: Stream = SHELVES) -> list[tuple[bool, Any]]:
    """Return what is sent, in its order: whether it is a label, and what it says."""
    writer, count = writer_of(stream), len(events)
    rows = events.frame.select(writer.columns).rows()
    return [
        (
            number >= count,
            json.loads((writer.label if number >= count else writer.interaction)(rows[number % count])),
        )
        for number in order_of(events).tolist()
    ]


def test_the_rows_of_an_event_are_one_interaction_and_a_label_each(tmp_path: Path) -> None:
    rows = [
        row("b", 2_000, 7, clicked=True, price=None),
        row("a", 1_000, 3, known=1_000),
        row("b", 2_000, 8, vector=None),
        row("a", 1_000, 1, clicked=True, known=5_000),
    ]
    found = messages(read(tmp_path, rows))
    assert [(is_label, each["shelf"]) for is_label, each in found] == [
        (False, "a"), (True, "a"), (False, "b"), (True, "b"), (True, "b"), (True, "a"),
    ]  # fmt: skip
    assert found[2][1] == {
        "shelf": "b",
        "who": {"user": "ub"},
        "at": 2_000,
        "width": 2.0,
        "phone": True,
        "page": {
            "shown": [
                {"product": {"id": 7, "size": 1.0}, "vector": [0.5, 1.0]},
                {"product": {"id": 8, "size": 1.0}, "price": 1.5},
            ]
        },
    }
    assert found[3][1] == {
        "shelf": "b", "who": {"user": "ub"}, "product": {"id": 7}, "known": 2_010, "seconds": 3.0,
        "worth": 2.0, "clicked": True,
    }  # fmt: skip


def test_propensities_are_of_the_item_or_of_the_message(tmp_path: Path) -> None:
    given = [row("a", 1, 1, p=0.5, t=1.0), row("a", 1, 2, p=None, t=1.0)]
    where = {"propensity": "/p", "target_propensity": "/t"}
    for own, items, message in (
        (("propensity",), [{"p": 0.5}, {}], {"t": 1.0}),
        (("propensity", "target_propensity"), [{"p": 0.5, "t": 1.0}, {"t": 1.0}], {}),
    ):
        names = (*DEFINITION["interactions"]["item_fields"], *own)
        interactions = DEFINITION["interactions"] | where | {"item_fields": names}
        stream = Stream.model_validate(DEFINITION | {"interactions": interactions})
        [found] = [each for is_label, each in messages(read(tmp_path, given, stream), stream) if not is_label]
        shown = found["page"]["shown"]
        assert [{name: each[name] for name in ("p", "t") if name in each} for each in shown] == items
        assert {name: found[name] for name in ("p", "t") if name in found} == message


def test_the_items_of_a_slate_keep_their_order_and_stand_together(tmp_path: Path) -> None:
    rows = [row(n % 5, 1_000 * (5 - n % 5), 100 - n) for n in range(15)]
    shown = [each["page"]["shown"] for is_label, each in messages(read(tmp_path, rows)) if not is_label]
    assert [[item["product"]["id"] for item in each] for each in shown] == [
        [100 - n, 95 - n, 90 - n] for n in (4, 3, 2, 1, 0)
    ]


BAD: dict[str, dict[str, Any]] = {
    "no_id": {"product.id": None},
    "no_time": {"at": None},
    "no_number": {"worth": None},
    "no_feature": {"phone": None},
    "out_of_range": {"worth": 1e9},
    "label_before_event": {"known": 0},
    "item_twice": {"product.id": 1},
    "differs_in_slate": {"at": 1_500, "known": 2_000},
}


@pytest.mark.parametrize("reason", BAD)
def test_a_row_that_cannot_be_used_takes_its_slate_with_it(tmp_path: Path, reason: str) -> None:
    rows = [row("a", 1_000, 1), row("b", 1_100, 1), row("a", 1_000, 2) | BAD[reason], row("a", 1_000, 3)]
    events = read(tmp_path, rows)
    assert (events.rows, events.skipped) == (4, {reason: 3})
    assert [each["shelf"] for _, each in messages(events)] == ["b", "b"]


@pytest.mark.parametrize("change", [{"who.user": "other"}, {"width": 3.0}, {"phone": False}], ids=min)
def test_what_is_of_the_message_is_the_same_in_all_rows(tmp_path: Path, change: dict[str, Any]) -> None:
    assert read(tmp_path, [row("a", 1_000, 1), row("a", 1_000, 2) | change]).skipped == {
        "differs_in_slate": 2
    }
    assert not read(tmp_path, [row("a", 1_000, 1), row("b", 1_000, 2) | change]).skipped


def test_the_label_of_an_item_may_be_missing(tmp_path: Path) -> None:
    rows = [row("a", 1_000, 1), row("a", 1_000, 2) | {"clicked": None}, row("a", 1_000, 3) | {"known": None}]
    events = read(tmp_path, rows)
    assert events.skipped == {}
    assert order_of(events).tolist() == [0, 3]


def test_a_slate_that_is_too_long_and_rows_without_an_event_are_skipped(tmp_path: Path) -> None:
    rows = [row("a", 1_000, n) for n in range(4)]
    rows += [row("b", 2_000, n) for n in range(3)] + [row(None, 2_000, n) for n in range(2)]
    assert read(tmp_path, rows).skipped == {"no_id": 2, "too_many_items": 4}


def test_the_first_events_are_whole_slates(tmp_path: Path) -> None:
    events = read(tmp_path, [row(n // 3, 1_000 * (n // 3), n) for n in range(9)])
    assert [len(events.first(count)) for count in (None, 1, 2, 3, 4)] == [9, 3, 6, 9, 9]
    assert len(messages(events.first(2))) == 2 + 6


def test_a_table_needs_event_ids_and_columns_of_one_meaning(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column for /shelf"):
        read(tmp_path, [{name: value for name, value in row("a", 1, 1).items() if name != "shelf"}])
    interactions = DEFINITION["interactions"] | {"event_id": "/id"}
    labels = DEFINITION["labels"] | {"event_id": "/id"}
    entities = {"user": "/who/user", "product": "/id"}
    stream = Stream.model_validate(
        DEFINITION
        | {"interactions": interactions, "labels": labels | {"event_id": "/event"}, "entities": entities}
    )
    with pytest.raises(
        ConfigError, match=r"stream.entities.product is of each item, and event_id of the message"
    ):
        read(tmp_path, [row("a", 1, 1)], stream)


@examples(40)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 30)), min_size=1, max_size=25))
def test_whatever_the_rows_each_slate_comes_before_its_labels_and_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[int, int, int]]
) -> None:
    rows = [row(shelf, 10 * shelf, product, known=10 * shelf + late) for shelf, product, late in drawn]
    events = read(tmp_path_factory.mktemp("rows"), rows)
    if not len(events):
        return
    decoders, shown = InputDecoders.of(SHELVES), dict[Any, set[Any]]()
    for is_label, said in messages(events):
        value = json.dumps(said).encode()
        if is_label:
            label = decoders.labels.decode(value)
            shown[label.event_id].remove(label.ids)
        else:
            slate = decoders.interactions.decode(value)
            assert isinstance(slate, Slate)
            assert slate.event_id not in shown
            shown[slate.event_id] = {item.ids for item in slate.items}
    assert not any(shown.values())
    usable = pl.DataFrame(rows).filter(
        pl.struct("shelf", "product.id").is_duplicated().any().over("shelf").not_()
    )
    usable = usable.filter(pl.len().over("shelf") <= 3)
    assert sorted(shown) == sorted(set(usable["shelf"].to_list()))


def test_a_replay_s_records_by_partition_are_those_that_are_sent(tmp_path: Path) -> None:
    events = read(tmp_path, [row(n // 3, 1_000 * (n // 3), n) for n in range(30)])
    schedule = Schedule(events, 4, writer_of(SHELVES).key_column)
    interactions, labels = schedule.records_by_partition()
    assert sorted(number for each in interactions for number in each.tolist()) == [*range(0, 30, 3)]
    assert sorted(number for each in labels for number in each.tolist()) == [*range(30, 60)]
