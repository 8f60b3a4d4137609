"""Labels that are corrected where live tables gave features: as one by one, over deaths of the worker."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Join as JoinSettings
from pipeline.features.live_tables import Rows
from pipeline.model.snapshot import pack
from pipeline.recovery.table_rows import replay_rows
from pipeline.task.live_tables import LiveTable
from pipeline.task.task import Task
from tests.pipeline.task.test_live_tables import (
    ALL,
    changes,
    drawn_couriers,
    drawn_items,
    drawn_orders,
    end,
    feed,
    orders,
    reference_of,
)
from tests.support.builders import Inputs, join_settings
from tests.support.entries import delivered, entries
from tests.support.examples import examples
from tests.support.live_tables import DECODERS, LATEST, STREAM, Given, event, new_model, new_task
from tests.support.output_log import OutputLog
from tests.support.plain import Plain
from tests.support.spilling import small_blocks

Change: TypeAlias = tuple[int, int, int, Any, int]
answers = st.lists(
    st.lists(st.tuples(st.sampled_from([0, 12, 40, 99, 101, 150, 230]), st.sampled_from([0.0, 0.4, 1.0]))),
    max_size=40,
)
"""Of each order, the delays of its labels and what they say."""
turns = st.tuples(*[st.integers(0, 12)] * 4, st.sampled_from([1, 3, ALL]), st.booleans(), st.booleans())
"""How many records of each input come, how many are taken, whether there is a snapshot, and a death."""
corrected = st.builds(
    join_settings,
    corrections=st.sampled_from(["add", "replace"]),
    max_pending=st.sampled_from([3, 500_000]),
    max_closed=st.sampled_from([3, 1_000_000]),
    max_in_memory=st.sampled_from([1, 3, 200_000]),
)


def labels_of(made: list[Given], drawn: list[list[tuple[int, float]]]) -> list[Given]:
    """Return the labels of orders, in the order in which they come."""
    found = []
    for order, said in zip(made, drawn, strict=False):
        about = json.loads(order.source.value or b"")
        found += [(order.time + delay, about, late) for delay, late in said]
    return [
        event("arrivals", int(about["event"][1:]), at, about["courier"], about["item"], 2 * number, late)
        for number, (at, about, late) in enumerate(sorted(found, key=lambda each: each[0]))
    ]


def inputs_of(made: list[Given], labels: list[Given]) -> Inputs:
    return Inputs(
        entries([each.source for each in made], DECODERS.interactions, LATEST),
        entries([each.source for each in labels], DECODERS.labels, LATEST),
    )


def restored(log: OutputLog, join: JoinSettings, topics: list[list[Given]]) -> Task:
    """Return the task as it was, with tables whose rows are read from their topics."""
    assert log.state is not None
    tables = []
    for features, messages in zip(new_task().tables.tables, topics, strict=True):
        rows, saved = Rows(features.features), (log.state.tables or {})[features.features.name]
        replay_rows(rows, [delivered(each.source) for each in messages], saved.offset)
        tables.append(LiveTable(rows, saved.offset))
    return log.restore(join, tables)


def left_of(task: Task, topics: list[list[Given]]) -> list[list[Given]]:
    """Return what a task has not processed of tables, labels and orders."""
    tables = [table.offset for table in task.tables.tables]
    offsets = [*tables, task.labels.position.offset, task.interactions.position.offset]
    return [
        [each for each in topic if each.source.offset >= offset]
        for topic, offset in zip(topics, offsets, strict=True)
    ]


@examples(150)
@given(
    orders=orders,
    records=st.tuples(changes, changes),
    said=answers,
    drawn=st.lists(turns, max_size=12),
    join=corrected,
)
def test_outcomes_are_those_of_a_plain_reference_over_deaths(
    orders: list[tuple[int, int, str, int]],
    records: tuple[list[Change], list[Change]],
    said: list[list[tuple[int, float]]],
    drawn: list[tuple[int, int, int, int, int, bool, bool]],
    join: JoinSettings,
) -> None:
    made, _ = drawn_orders(orders)
    labels = labels_of(made, said)
    topics = [drawn_items(records[0]), drawn_couriers(records[1]), labels, made]
    looked_up = reference_of(*topics).found
    plain = Plain(inputs_of(made, labels), join, new_model(), stream=STREAM, looked_up=looked_up)
    log = OutputLog(stream=STREAM, make_model=new_model, make_spilled=lambda: small_blocks(types=log.types))
    task = new_task(join=join, spilled=small_blocks(types=log.types))
    left = [*topics]
    for *counts, limit, snapshot, dies in [*drawn, (ALL, ALL, ALL, ALL, ALL, True, True)]:
        taken = [each[:count] for each, count in zip(left, counts, strict=True)]
        left = [each[count:] for each, count in zip(left, counts, strict=True)]
        feed(task, taken[:2], *taken[2:])
        if not any(left):
            end(task)
        log.commit(task, task.advance(limit), snapshot)
        if dies:
            task = restored(log, join, topics[:2])
            left = left_of(task, topics)
    feed(task, left[:2], *left[2:])
    end(task)
    while not (batch := task.advance(ALL)).empty:
        log.commit(task, batch, snapshot=False)
    assert log.written.predictions == plain.written.predictions
    assert log.written.outcomes == plain.written.outcomes
    tables = {"items", "couriers"}
    letters = [each for each in log.written.dead_letters if each.source.topic not in tables]
    assert letters == plain.written.dead_letters
    assert pack(task.model) == pack(plain.model)
    assert task.counters["corrected"] == plain.counters["corrected"]
