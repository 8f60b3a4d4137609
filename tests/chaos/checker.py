"""The verdict: what a read-committed reader finds, against what the inputs have to come to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, TypeVar

import msgspec

from pipeline.config.settings import Corrections
from pipeline.features.feature_set import FeatureSet
from pipeline.kafka.clients import groupless_consumer
from pipeline.kafka.output_values import OutputValues
from pipeline.model.label_policy import LabelPolicy
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import LabelRequest, Outcome, Prediction
from tests.chaos.challengers import Challenger, challengers
from tests.chaos.derivation import WrongError, agree, derive
from tests.chaos.expected import DeadLetter, Expected, Step
from tests.chaos.world import World
from tests.integration.harness import Pipeline, Written, read_to_end

Record = TypeVar("Record", Prediction, Outcome, LabelRequest)


@dataclass
class Found:
    """What was counted, and what is wrong."""

    predictions: int = 0
    outcomes: int = 0
    dead_letters: int = 0
    problems: list[str] = field(default_factory=list)


def check(
    pipeline: Pipeline,
    world: World,
    *,
    replayed: bool,
    challenged: bool,
    policy: LabelPolicy | None,
    corrections: Corrections,
) -> Found:
    """Hold all that the pipeline wrote against the world.

    Parameters
    ----------
    pipeline
        It has processed everything, and its workers have ended.
    world
        What was sent.
    replayed
        Whether all of it was there before the first worker started; then there is only one order.
    challenged
        Whether there were challengers.
    policy
        By which labels were asked for, if not all were.
    corrections
        What later labels teach.
    """
    found = Found()
    for partition in range(pipeline.partitions):
        shadows = challengers(FeatureSet.of(world.stream)) if challenged else {}
        one = _Partition(
            pipeline,
            world,
            partition,
            found,
            challengers=shadows,
            policy=policy,
            corrections=corrections,
            replayed=replayed,
        )
        outputs = one.replay if replayed else one.outputs
        for what in (one.inputs, outputs, one.requests, one.dead_letters, one.state):
            try:
                what()
            except WrongError as error:
                found.problems.append(f"partition {partition}: {error}")
    return found


def count(pipeline: Pipeline) -> Found:
    """Count what the pipeline wrote, where no checker knows the right answer."""
    found, topics = Found(), pipeline.topics
    for partition in range(pipeline.partitions):
        for name in ("predictions", "outcomes", "dead_letters"):
            written = sum(1 for _ in _written(pipeline, getattr(topics, name), partition))
            setattr(found, name, getattr(found, name) + written)
            if not written:
                found.problems.append(f"partition {partition}: nothing in {getattr(topics, name)}")
    return found


def compare(pipeline: Pipeline, undisturbed: Pipeline) -> list[str]:
    """Differences between the values that two pipelines wrote, the first one in each partition and topic."""
    differences = []
    values, calm_values = _values(pipeline), _values(undisturbed)
    for name in ("predictions", "outcomes", "dead_letters", "label_requests"):
        topic, other = getattr(pipeline.topics, name), getattr(undisturbed.topics, name)
        for partition in range(pipeline.partitions):
            pairs = zip_longest(_written(pipeline, topic, partition), _written(undisturbed, other, partition))
            for number, (one, calm) in enumerate(pairs):
                if (
                    one is None
                    or calm is None
                    or one.key != calm.key
                    or values.json(topic, one.value or b"") != calm_values.json(other, calm.value or b"")
                ):
                    differences.append(
                        f"record {number} of {topic}, partition {partition}, is not as undisturbed: "
                        f"{one and one.value!r} where it has {calm and calm.value!r}"
                    )
                    break
    return differences


class _Partition:
    """One partition's checks; each raises `WrongError` at the first thing that is wrong."""

    def __init__(
        self,
        pipeline: Pipeline,
        world: World,
        partition: int,
        found: Found,
        *,
        challengers: Mapping[str, Challenger],
        policy: LabelPolicy | None,
        corrections: Corrections,
        replayed: bool,
    ) -> None:
        self._replayed = replayed
        self._types = OutputTypes.of(world.stream)
        self._corrections = corrections
        self._pipeline = pipeline
        self._topics = pipeline.topics
        self._values = _values(pipeline)
        self._world = world
        self._partition = partition
        self._found = found
        self._expected = Expected(world, partition)
        self._challengers = challengers
        self._policy = policy

    def inputs(self) -> None:
        """The inputs hold what was sent, so that offsets are known and it is the pipeline that is checked."""
        for topic, is_label in ((self._topics.interactions, False), (self._topics.labels, True)):
            sent = (each for each in self._world.inputs(self._partition) if each.is_label == is_label)
            for offset, (there, given) in enumerate(zip_longest(self._read(topic), sent)):
                agree(f"{topic} at {offset}", there and there[1:3], given and (given.key, given.value))
        for table in self._expected.tables:
            topic, number = (
                self._topics.table(table.table.name),
                self._partition if table.table.divided else 0,
            )
            records = _written(self._pipeline, topic, number)
            for offset, (found, record) in enumerate(zip_longest(records, table.records)):
                agree(f"{topic} at {offset}", found and found[1:3], record and (record.key, record.value))

    def outputs(self) -> None:
        """Every prediction and outcome, in the order that they tell of."""
        for step in self._steps():
            self._count(step)

    def replay(self) -> None:
        """As `outputs`, and in the only order that a replay has."""
        for number, (step, wanted) in enumerate(zip_longest(self._steps(), self._expected.replayed())):
            agree(f"step {number}", step, wanted)
            self._count(step)

    def requests(self) -> None:
        """The labels of the predictions that say so are asked for, once each, and no others."""
        if self._policy is None:
            return
        predictions = (
            each for each in self._records(self._topics.predictions, self._types.predictions) if each.asked
        )
        wanted = [self._types.label_request.of(each, number) for number, each in enumerate(predictions)]
        requests = list(self._records(self._topics.label_requests, self._types.requests))
        agree("what asks for labels", requests, wanted)
        outcomes = self._records(self._topics.outcomes, self._types.outcomes)
        unasked = sum(each.asked is False and each.status == "labelled" for each in outcomes)
        self._expected.counters.update(asked=len(requests), unasked=unasked)

    def dead_letters(self) -> None:
        """Every message that cannot be used is in dead-letters, once, as it came, and no other."""
        left = dict(self._expected.dead_letters)
        sources = {self._topics.interactions: "interactions", self._topics.labels: "labels"}
        sources |= {self._topics.table(each.table.name): each.table.name for each in self._expected.tables}
        for dead_letter in self._read(self._topics.dead_letters):
            about = {
                name.removeprefix("__streams.errors."): text.decode() for name, text in dead_letter.headers
            }
            agree("the partition that a dead letter names", about["partition"], str(self._partition))
            source = sources[about["topic"]], int(about["offset"])
            wanted = left.pop(source, None)
            agree(f"dead letter for {about['topic']}, {source[1]}", _dead_letter(dead_letter, about), wanted)
            self._found.dead_letters += 1
        agree("the number of missing dead letters", len(left), 0)

    def state(self) -> None:
        """Counters and positions of the last state record."""
        key = f"{self._partition}/state".encode()
        states = [each.value for each in self._read(self._topics.checkpoints) if each.key == key]
        agree("whether there is a state record", bool(states), True)
        state: dict[str, Any] = json.loads(states[-1] or b"")
        counters = self._expected.counters
        for name, count in state["counters"].items():
            if name != "early":
                agree(f"counter {name}", count, counters[name])
        for name in ("interactions", "labels"):
            agree(f"position in {name}", state[name]["offset"], counters[name])
        for table in self._expected.tables:
            name, found = table.table.name, state["tables"][table.table.name]
            wanted = len(table.records), self._expected.rows[name]
            agree(f"offset and rows of table {name}", (found["offset"], found["rows"]), wanted)
        agree("predictions that wait, and labels", (state["pending"], state["waiting"]), (0, []))

    def _count(self, step: Step) -> None:
        if step.learned:
            self._found.outcomes += 1
        else:
            self._found.predictions += 1

    def _steps(self) -> Iterator[Step]:
        predictions = self._records(self._topics.predictions, self._types.predictions)
        outcomes = self._records(self._topics.outcomes, self._types.outcomes)
        return derive(
            self._expected,
            predictions,
            outcomes,
            self._challengers,
            self._policy,
            corrections=self._corrections,
            replayed=self._replayed,
        )

    def _records(self, topic: str, decoder: msgspec.json.Decoder[Record]) -> Iterator[Record]:
        for written in self._read(topic):
            record = decoder.decode(self._values.json(topic, written.value or b""))
            agree(f"key of {written.value!r}", written.key, str(record.ids[0]).encode())
            yield record

    def _read(self, topic: str) -> Iterator[Written]:
        return _written(self._pipeline, topic, self._partition)


def _dead_letter(dead_letter: Written, about: dict[str, str]) -> DeadLetter:
    return DeadLetter(about["exception"], dead_letter.key, dead_letter.value)


def _values(pipeline: Pipeline) -> OutputValues:
    return OutputValues(replace(pipeline.topics, requests_labels=True))


def _written(pipeline: Pipeline, topic: str, partition: int) -> Iterator[Written]:
    with closing(groupless_consumer(pipeline.kafka)) as consumer:
        yield from read_to_end(consumer, topic, partition)
