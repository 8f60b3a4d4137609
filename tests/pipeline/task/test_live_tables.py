"""Live tables in a task: the order of the merge, what rows say, and what becomes of bad records."""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.features.live_tables import Rows, TableRecord, in_force
from pipeline.records.decoding import NO_TIMESTAMP, RejectedRecord
from pipeline.records.encoding import encode
from pipeline.records.inputs import RawMessage
from pipeline.records.output_types import OutputTypes
from pipeline.recovery.table_rows import replay_rows
from pipeline.task import task as module
from pipeline.task.batch import Batch
from pipeline.task.plan import DeadLetter
from pipeline.task.state import State
from pipeline.task.task import Task
from pipeline.worker.encoder import RecordEncoder
from tests.support.entries import delivered, entries, queued
from tests.support.examples import examples
from tests.support.live_tables import (
    DECODERS,
    FEATURES,
    LATEST,
    STREAM,
    Given,
    Reference,
    event,
    feed_table,
    new_task,
)

TYPES = OutputTypes.of(STREAM)
ALL = 10**6
BAD = (b"{", b"[1]", b'{"id":1}', b'{"id":"i1","price":NaN,"at":1}', b'{"speed":"x"}')


def item(offset: int, key: str, at: int, price: float, **more: Any) -> Given:
    value = {"id": key, "price": price, "at": at} | more
    return Given(RawMessage("items", 0, offset, key.encode(), json.dumps(value).encode()), at)


def courier(offset: int, key: str, at: int, speed: float) -> Given:
    value = json.dumps({"speed": speed}).encode()
    return Given(RawMessage("couriers", 0, offset, key.encode(), value), at)


def feed(task: Task, tables: list[list[Given]], labels: list[Given], orders: list[Given]) -> None:
    for table, found in zip(task.tables.tables, tables, strict=True):
        if found:
            feed_table(table, found)
    for queue, found, decoder in (
        (task.labels, labels, DECODERS.labels),
        (task.interactions, orders, DECODERS.interactions),
    ):
        if found:
            queue.feed(queued(entries([each.source for each in found], decoder, LATEST)))


def end(task: Task) -> None:
    for queue in (task.interactions, task.labels, *(table.queue for table in task.tables.tables)):
        queue.at_end = True


class Texts:
    """What a task writes."""

    def __init__(self) -> None:
        self._encoder = RecordEncoder(TYPES)
        self.predictions: list[bytes] = []
        self.outcomes: list[bytes] = []

    def add(self, batch: Batch) -> None:
        encoded = self._encoder.encode(batch)
        self.predictions += encoded.predictions.values
        self.outcomes += encoded.outcomes.values

    def lookups(self) -> dict[str, tuple[list[float], dict[str, int]]]:
        """Return the features of tables, and the tables' offsets, of each event."""
        begin = FEATURES.own.stop
        decoded = map(json.loads, self.predictions)
        return {each["event_id"]: (each["features"][begin:], each["tables"]) for each in decoded}


orders = st.lists(
    st.tuples(st.integers(0, 9), st.integers(-9, 3), st.sampled_from("abc"), st.integers(1, 5)), max_size=40
)
prices = st.sampled_from([-1.0, 0.0, 3.5, 250.0])
contents = st.fixed_dictionaries(
    {"price": prices},
    optional={
        "sold": st.booleans(),
        "genre": st.sampled_from(["jazz", "pop"]),
        "place": st.just([0.25, -3.0]),
    },
)
changes = st.lists(
    st.tuples(
        st.integers(0, 20),
        st.integers(-30, 10),
        st.integers(1, 5),
        st.none() | contents | st.sampled_from(BAD),
        st.sampled_from([0, 0, 0, 0, 1, 2]),
    ),
    max_size=25,
)


def drawn_orders(drawn: list[tuple[int, int, str, int]]) -> tuple[list[Given], list[Given]]:
    """Return orders, and arrivals a little later."""
    times = list(accumulate((later for later, *_ in drawn), initial=1_000))
    made, arrivals = [], []
    for number, (_, moved, who, what) in enumerate(drawn):
        made.append(event("orders", number, times[number] + moved, who, what, 2 * number))
        arrivals.append(event("arrivals", number, times[number] + 12, who, what, 2 * number))
    return made, arrivals


def drawn_items(drawn: list[tuple[int, int, int, Any, int]]) -> list[Given]:
    """Return records of items: rows, tombstones, garbage, other keys; each may be out of order."""
    found, now = list[Given](), 990
    for number, (later, moved, key, content, odd) in enumerate(drawn):
        now += later
        offset, at = 3 * number, now + moved
        name = b"" if odd == 1 else str(key).encode()
        if isinstance(content, dict):
            value = json.dumps({"id": key + (odd == 2), "at": at} | content).encode()
        else:
            value = content
        record = FEATURES.tables[0].decode(name, value, at)
        found.append(Given(RawMessage("items", 0, offset, name, value), record.timestamp))
    return found


def drawn_couriers(drawn: list[tuple[int, int, int, Any, int]]) -> list[Given]:
    found, now = list[Given](), 990
    for number, (later, moved, key, content, _) in enumerate(drawn):
        now += later
        speed = None if content is None else float(now % 7)
        made = courier(number, "abcde"[key - 1], now + moved, speed or 0.0)
        if speed is None:
            made = made._replace(source=made.source._replace(value=None))
        found.append(made)
    return found


def reference_of(
    items: list[Given], couriers: list[Given], labels: list[Given], made: list[Given]
) -> Reference:
    reference = Reference()
    reference.run({"items": items, "couriers": couriers}, labels, made)
    return reference


@examples(200)
@given(
    orders=orders,
    items=changes,
    couriers=changes,
    pieces=st.lists(st.tuples(*[st.integers(0, 12)] * 4, st.sampled_from([1, 3, ALL])), max_size=12),
    at_once=st.sampled_from([1, 5, ALL]),
)
def test_rows_are_those_of_a_plain_reference(
    orders: list[tuple[int, int, str, int]],
    items: list[tuple[int, int, int, Any, int]],
    couriers: list[tuple[int, int, int, Any, int]],
    pieces: list[tuple[int, int, int, int, int]],
    at_once: int,
) -> None:
    made, arrivals = drawn_orders(orders)
    queues = [drawn_items(items), drawn_couriers(couriers), arrivals, made]
    reference = reference_of(*queues)
    left, written, task = [list(each) for each in queues], Texts(), new_task()
    dead = list[DeadLetter]()
    with patch.object(module, "MAX_MESSAGES", at_once):
        for *counts, limit in [*pieces, (ALL, ALL, ALL, ALL, ALL)]:
            taken = [each[:count] for each, count in zip(left, counts, strict=True)]
            left = [each[count:] for each, count in zip(left, counts, strict=True)]
            feed(task, taken[:2], *taken[2:])
            if not any(left):
                end(task)
            batch = task.advance(limit)
            written.add(batch)
            dead += batch.dead_letters
            assert_rows_follow_from_the_topics(task, queues[:2])
        while not (batch := task.advance(ALL)).empty:
            written.add(batch)
            dead += batch.dead_letters
    assert written.lookups() == reference.found
    tables = {"items", "couriers"}
    about = [(each.source.topic, each.source.offset, str(each.fault)) for each in dead]
    assert sorted(each for each in about if each[0] in tables) == sorted(reference.faults)


def assert_rows_follow_from_the_topics(task: Task, topics: list[list[Given]]) -> None:
    """What a restart would read has to come to the rows, and to what the state record says of them."""
    state = msgspec.json.decode(encode(task.state({})), type=State)
    for table, messages in zip(task.tables.tables, topics, strict=True):
        saved, rows = (state.tables or {})[table.features.name], Rows(table.features)
        replay_rows(rows, [delivered(each.source) for each in messages], saved.offset)
        assert (len(rows), rows.digest) == (saved.rows, saved.digest)


def test_tables_come_first_then_labels_then_interactions() -> None:
    task, written = new_task(), Texts()
    feed(
        task,
        [[item(0, "1", 1_000, 3.5), item(1, "1", 1_001, 9.0)], [courier(0, "a", 1_000, 2.0)]],
        [],
        [event("orders", 1, 1_000, "a", 1, 0)],
    )
    end(task)
    written.add(task.advance(ALL))
    features, offsets = written.lookups()["e1"]
    assert offsets == {"items": 1, "couriers": 1}
    assert features[:2] == [1.0, round(1.504077, 6)]
    assert task.tables.versions == {"items": 2, "couriers": 1}


def test_the_merge_waits_for_a_table_that_may_have_more() -> None:
    task = new_task()
    feed(task, [[], []], [], [event("orders", 1, 1_000, "a", 1, 0)])
    end(task)
    task.tables.tables[1].queue.at_end = False
    assert task.advance(ALL).empty
    feed(task, [[], [courier(0, "a", 1_001, 2.0)]], [], [])
    written = Texts()
    written.add(task.advance(ALL))
    assert written.lookups()["e1"][1] == {"items": 0, "couriers": 0}
    assert task.tables.versions == {"items": 0, "couriers": 1}


def test_a_table_does_not_move_stream_time() -> None:
    task = new_task()
    feed(task, [[item(0, "1", 10**8, 3.5)], []], [], [event("orders", 1, 1_000, "a", 1, 0)])
    end(task)
    batch = task.advance(ALL)
    assert (len(batch.predictions), len(batch.outcomes), batch.steps) == (1, 0, 2)
    assert task.stream_time == 1_000


def test_a_record_of_the_future_holds_at_once_and_holds_nothing_up() -> None:
    record = FEATURES.tables[1].decode(b"a", b'{"speed":2.0}', 10**9)
    assert isinstance(record, TableRecord)
    assert in_force(record, 10**9) == record
    assert in_force(record, 10**9 - 1).timestamp == NO_TIMESTAMP


def test_a_deleted_row_is_unknown_again() -> None:
    task, written = new_task(), Texts()
    gone = courier(1, "a", 1_001, 0.0)
    gone = gone._replace(source=gone.source._replace(value=None))
    made = [event("orders", n, 1_000 + n, "a", 1, n) for n in range(2)]
    feed(task, [[], [courier(0, "a", 1_000, 2.0), gone]], [], made)
    end(task)
    written.add(task.advance(ALL))
    found = written.lookups()
    assert [found[f"e{n}"][0][-2:] for n in range(2)] == [[1.0, 2.0], [0.0, 0.0]]
    assert len(task.tables.tables[1].rows) == 0
    assert task.tables.tables[1].rows.digest == "0" * 32


@pytest.mark.parametrize(
    ("key", "value", "fault", "reason"),
    [
        (None, b'{"speed":1}', "wrong_key", "the key is None"),
        (b"\xff", b'{"speed":1}', "wrong_key", "has to be the id of a row"),
        (b"x" * 257, b'{"speed":1}', "wrong_key", "1 to 256 characters"),
        (b"a", b'{"speed":"1"}', "invalid", "Expected `float`, got `str` - at `$.speed`"),
        (b"a", b'{"speed":1e16}', "invalid", "at `$.speed`"),
        (b"a", b'{"speed":NaN}', "undecodable", "not a JSON object"),
        (b"a", b'{"speed":null}', "invalid", "got `null`"),
        (b"a", b'{"x":' + b"[" * 100_000, "undecodable", "not a JSON object"),
        (b"a", b"\xff", "undecodable", "not a JSON object"),
        (b"a", b"", "undecodable", "not a JSON object"),
        (b"a", rb'{"speed":"\ud800"}', "invalid", "Expected `float`, got `str`"),
        (b"a", rb'{"speed":1.0,"x":"\ud800"', "undecodable", "not a JSON object"),
    ],
)
def test_what_cannot_be_used_is_a_dead_letter(
    key: bytes | None, value: bytes, fault: str, reason: str
) -> None:
    task = new_task()
    feed(task, [[], [Given(RawMessage("couriers", 0, 4, key, value), 1_000)]], [], [])
    end(task)
    [dead] = task.advance(ALL).dead_letters
    assert (dead.source.topic, dead.source.offset, dead.fault.value) == ("couriers", 4, fault)
    assert reason in dead.reason
    assert task.counters[fault] == 1
    assert task.tables.versions == {"items": 0, "couriers": 5}


def test_half_a_surrogate_pair_matters_in_fields_that_are_used() -> None:
    items, couriers = FEATURES.tables
    ignored = couriers.decode(b"a", rb'{"speed":1.0,"name":"\ud83d"}', 5)
    assert ignored == couriers.decode(b"a", b'{"speed":1.0}', 5)
    used = items.decode(b"i", rb'{"id":"i","at":1,"price":1.0,"genre":"\ud83d"}', 5)
    assert isinstance(used, RejectedRecord)
    assert (used.fault, used.reason[:36]) == ("undecodable", "a field has half a surrogate pair, w")


def test_only_the_partition_that_reports_writes_dead_letters() -> None:
    task = new_task()
    task.tables.tables[1].reports = False
    feed(task, [[], [Given(RawMessage("couriers", 0, 4, b"a", b"{"), 1_000)]], [], [])
    end(task)
    batch = task.advance(ALL)
    assert (batch.steps, batch.dead_letters, task.counters["undecodable"]) == (1, [], 0)
    assert task.tables.tables[1].rejected == 1


def test_outcomes_have_what_their_predictions_have() -> None:
    task, written = new_task(), Texts()
    made = event("orders", 1, 1_000, "a", 1, 0)
    feed(task, [[item(0, "1", 900, 3.5)], []], [event("arrivals", 1, 1_010, "a", 1, 0)], [made])
    end(task)
    written.add(task.advance(ALL))
    [prediction], [outcome] = written.predictions, written.outcomes
    assert TYPES.outcomes.decode(outcome).features == TYPES.predictions.decode(prediction).features
    assert json.loads(outcome)["tables"] == {"items": 1, "couriers": 0}
    assert encode(TYPES.outcomes.decode(outcome)) == outcome
    assert encode(TYPES.predictions.decode(prediction)) == prediction


def test_what_was_read_ahead_is_read_again_after_a_rewind() -> None:
    task = new_task()
    feed(task, [[item(0, "1", 900, 3.5), item(1, "2", 2_000, 1.0)], []], [], [])
    task.tables.tables[1].queue.at_end = True
    assert task.advance(ALL).empty, "the inputs may have earlier ones"
    task.rewind()
    assert not task.tables.ready
    assert task.tables.tables[0].offset == 0
