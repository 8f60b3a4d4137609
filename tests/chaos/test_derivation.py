"""The checker passes what the pure core writes, and nothing else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pytest

from pipeline.config.settings import Config, Join, Learner
from pipeline.features.feature_set import FeatureSet
from pipeline.features.live_tables import Rows, TableFeatures, in_force
from pipeline.features.tables import Tables
from pipeline.model.challengers import resolve_challengers
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.learner_settings import learner_settings
from pipeline.model.model import Model
from pipeline.records.decoding import RejectedRecord
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import RawMessage
from pipeline.records.largest import MAX_SHARES_BYTES
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import EntityCounts, Outcome, Prediction
from pipeline.task.live_tables import LiveTable
from pipeline.task.record_queue import Position
from pipeline.task.task import Task
from pipeline.worker.encoder import RecordEncoder
from tests.chaos.challengers import SETTINGS as CHALLENGERS
from tests.chaos.challengers import challengers
from tests.chaos.derivation import WrongError, derive
from tests.chaos.expected import DeadLetter, Expected
from tests.chaos.policies import policy
from tests.chaos.run import SETTINGS
from tests.chaos.schedule import Fault, plan
from tests.chaos.world import Kind, World
from tests.support.entries import delivered, entries, queued

WORLD = World(seed=5, events=1_200, partitions=2, minutes=5.0)
BEGIN = 1_700_000_000_000
WITH_TABLES = World(seed=5, events=1_200, partitions=2, minutes=5.0, begin=BEGIN, tables=True)
PARTITION = 1
LATEST = BEGIN + 10**9


@dataclass
class Outputs:
    """What the pure core writes."""

    predictions: list[Prediction]
    outcomes: list[Outcome]
    dead_letters: dict[tuple[str, int], DeadLetter]
    counters: Counter[str] = field(default_factory=Counter)


@pytest.fixture(scope="module")
def expected() -> Expected:
    return Expected(WORLD, PARTITION)


@pytest.fixture(scope="module")
def written() -> Outputs:
    return outputs(None)


def outputs(asking: LabelPolicy | None, world: World = WORLD) -> Outputs:
    settings = Join.model_validate(
        {"window": SETTINGS["FORKS_JOIN__WINDOW"], "early": SETTINGS["FORKS_JOIN__EARLY"]}
    )
    configured = Config.model_validate({"challengers": json.loads(CHALLENGERS["FORKS_CHALLENGERS"])})
    features, decoders = FeatureSet.of(world.stream), InputDecoders.of(world.stream)
    types = OutputTypes.of(world.stream)
    beside = resolve_challengers(configured.challengers, 0, features)
    model = Model(
        learner_settings(Learner(), 0, features=features), Tables(), 1_000_000, beside, features=features
    )
    tables = [live_table(world, each) for each in features.tables]
    task = Task(PARTITION, model, settings, Position(0), Position(0), policy=asking, tables=tables)
    for is_label, queue, decoder in (
        (False, task.interactions, decoders.interactions),
        (True, task.labels, decoders.labels),
    ):
        given = [each for each in world.inputs(PARTITION) if each.is_label == is_label]
        topic = "labels" if is_label else "interactions"
        sources = [RawMessage(topic, PARTITION, at, each.key, each.value) for at, each in enumerate(given)]
        queue.feed(queued(entries(sources, decoder, latest=LATEST)))
        queue.at_end = True
    for offset in range(2):
        example = types.example(7, 3, 5, [0.5] * len(features), label=True, watch_ratio=1.0)
        counts = EntityCounts(int(world.videos[0]), events=20, labels=15, values=18.5)
        share = types.share(0, 20 * offset, 20 * (offset + 1), [counts], [example])
        task.inbox.offer(share, offset, MAX_SHARES_BYTES)  # so that each fills an outcome
    batch = task.advance(10**6)
    encoded = RecordEncoder(types).encode(batch)
    dead_letters = {
        (source.topic, source.offset): DeadLetter(fault, source.key, source.value)
        for source, fault, _ in batch.dead_letters
    }
    predictions = [types.predictions.decode(value) for value in encoded.predictions.values]
    outcomes = [types.outcomes.decode(value) for value in encoded.outcomes.values]
    return Outputs(predictions, outcomes, dead_letters, task.counters)


def test_the_pure_core_passes_in_the_order_of_a_replay(expected: Expected, written: Outputs) -> None:
    assert list(derive(expected, written.predictions, written.outcomes, challengers())) == list(
        expected.replayed()
    )
    assert written.dead_letters == expected.dead_letters
    assert {name: written.counters[name] for name in expected.counters} == dict(expected.counters)
    assert {dead_letter.fault for dead_letter in expected.dead_letters.values()} == {
        kind.fault for kind in Kind if kind.fault is not None
    }


def live_table(world: World, features: TableFeatures) -> LiveTable:
    """Return a table, fed with all of its records; this partition reports those that cannot be used."""
    [table] = [each for each in world.tables if each.name == features.name]
    live = LiveTable(Rows(features))
    records = table.of_partition(PARTITION, world.partitions)
    messages = [
        delivered(RawMessage(features.name, 0, at, each.key, each.value)) for at, each in enumerate(records)
    ]
    decoded = [features.decode(each.key, each.value, each.timestamp) for each in records]
    live.feed(
        messages, [each if isinstance(each, RejectedRecord) else in_force(each, LATEST) for each in decoded]
    )
    live.queue.at_end = True
    return live


def test_the_pure_core_passes_with_live_tables() -> None:
    found = outputs(None, WITH_TABLES)
    expected = Expected(WITH_TABLES, PARTITION)
    features = FeatureSet.of(WITH_TABLES.stream)
    steps = derive(expected, found.predictions, found.outcomes, challengers(features), replayed=True)
    assert list(steps) == list(expected.replayed())
    of_inputs = {source for source in expected.dead_letters if source[0] != "clips"}
    assert {source: found.dead_letters[source] for source in of_inputs} == {
        source: expected.dead_letters[source] for source in of_inputs
    }
    first = Expected(WITH_TABLES, 0)  # of a table that all partitions read, the first one reports
    of_clips = {source: letter for source, letter in first.dead_letters.items() if source[0] == "clips"}
    assert {
        source: letter for source, letter in found.dead_letters.items() if source[0] == "clips"
    } == of_clips
    assert {letter.fault for letter in of_clips.values()} == {
        "undecodable",
        "invalid",
        "wrong_key",
        "table_full",
    }
    known = np.array([prediction.features[-5] for prediction in found.predictions])
    assert 0.2 < known.mean() < 0.8


def apply_too_early(prediction: Prediction) -> Prediction:
    tables: dict[str, int] = getattr(prediction, "tables")  # noqa: B009 - the stream's type has it
    return msgspec.structs.replace(prediction, tables=tables | {"clips": tables["clips"] + 1})


def forget_a_row(prediction: Prediction) -> Prediction:
    features = [*prediction.features[:-5], 1.0 - prediction.features[-5], *prediction.features[-4:]]
    return msgspec.structs.replace(prediction, features=features)


def apply_backwards(prediction: Prediction) -> Prediction:
    return msgspec.structs.replace(prediction, tables={"clips": 0, "viewers": 0})


@pytest.mark.parametrize(
    ("sabotage", "replayed", "message"),
    [
        (apply_too_early, True, "prediction 400: table clips is"),
        (forget_a_row, False, "prediction 400: features"),
        (apply_backwards, False, "prediction 400: table clips was applied up to 0"),
    ],
)
def test_wrong_rows_are_found(
    sabotage: Callable[[Prediction], Prediction], replayed: bool, message: str
) -> None:
    found, expected = outputs(None, WITH_TABLES), Expected(WITH_TABLES, PARTITION)
    found.predictions[400] = sabotage(found.predictions[400])
    shadows = challengers(FeatureSet.of(WITH_TABLES.stream))
    with pytest.raises(WrongError, match=message):
        list(derive(expected, found.predictions, found.outcomes, shadows, replayed=replayed))


def test_the_pure_core_passes_where_few_labels_are_asked_for(expected: Expected) -> None:
    found = outputs(policy())
    asked = [prediction.asked is True for prediction in found.predictions]
    assert 0.3 < np.mean(asked) < 0.9
    assert list(derive(expected, found.predictions, found.outcomes, challengers(), policy()))
    number = asked.index(False)
    found.predictions[number] = msgspec.structs.replace(found.predictions[number], asked=True)
    with pytest.raises(WrongError, match=f"prediction {number}: asked"):
        list(derive(expected, found.predictions, found.outcomes, challengers(), policy()))


def next_float(number: float) -> float:
    """The next number up: one bit more."""
    return float(np.nextafter(number, np.inf))


def flip(outputs: Outputs) -> None:
    first = outputs.predictions[400]
    outputs.predictions[400] = msgspec.structs.replace(first, score=next_float(first.score))


def flip_challenger(outputs: Outputs) -> None:
    first = outputs.predictions[400]
    scores = first.challengers or {}
    changed = scores | {"linear": next_float(scores["linear"])}
    outputs.predictions[400] = msgspec.structs.replace(first, challengers=changed)


def forget_challengers(outputs: Outputs) -> None:
    outputs.outcomes[300] = msgspec.structs.replace(outputs.outcomes[300], challengers=None)


def flip_in_both(outputs: Outputs) -> None:
    """Consistent, but not what the model says."""
    victim = outputs.predictions[400]
    features = [*victim.features[:-1], next_float(victim.features[-1])]
    outputs.predictions[400] = msgspec.structs.replace(victim, features=features)
    for number, outcome in enumerate(outputs.outcomes):
        if outcome.event_id == victim.event_id:
            outputs.outcomes[number] = msgspec.structs.replace(outcome, features=features)


def drop_outcome(outputs: Outputs) -> None:
    del outputs.outcomes[300]


def drop_last_outcome(outputs: Outputs) -> None:
    del outputs.outcomes[-1]


def drop_prediction(outputs: Outputs) -> None:
    del outputs.predictions[300]


def repeat_prediction(outputs: Outputs) -> None:
    outputs.predictions.append(outputs.predictions[-1])


def repeat_as_new(outputs: Outputs) -> None:
    last = outputs.predictions[-1]
    outputs.predictions.append(msgspec.structs.replace(last, sequence=last.sequence + 1))


def repeat_outcome(outputs: Outputs) -> None:
    outputs.outcomes.insert(301, outputs.outcomes[300])


def flip_label(outputs: Outputs) -> None:
    victim = outputs.outcomes[300]
    outputs.outcomes[300] = msgspec.structs.replace(victim, label=not victim.label)


def forget_share(outputs: Outputs) -> None:
    outputs.outcomes[0] = msgspec.structs.replace(outputs.outcomes[0], shared=None)


def repeat_share(outputs: Outputs) -> None:
    first, second = outputs.outcomes[:2]
    outputs.outcomes[1] = msgspec.structs.replace(second, shared=first.shared)


@pytest.mark.parametrize(
    ("sabotage", "found"),
    [
        (flip, "prediction 400: score"),
        (flip_challenger, "prediction 400: challengers"),
        (forget_challengers, "outcome 300: challengers"),
        (flip_in_both, "prediction 400: features"),
        (drop_outcome, "outcome 300: sequence is 301"),
        (drop_last_outcome, "the number of outcomes"),
        (drop_prediction, "prediction 300: sequence is 301"),
        (repeat_prediction, "sequence"),
        (repeat_as_new, "one too many"),
        (repeat_outcome, "outcome 301: sequence is 300"),
        (flip_label, "outcome 300: label"),
        (forget_share, r"prediction \d+: features"),
        (repeat_share, "outcome 1: what partition 0 tells is from an outcome on that is 0, has to be 20"),
    ],
)
def test_sabotage_is_found(
    expected: Expected, written: Outputs, sabotage: Callable[[Outputs], None], found: str
) -> None:
    spoiled = Outputs(list(written.predictions), list(written.outcomes), {})
    sabotage(spoiled)
    with pytest.raises(WrongError, match=found):
        list(derive(expected, spoiled.predictions, spoiled.outcomes, challengers()))


def test_a_seed_repeats_world_and_schedule() -> None:
    again = World(seed=5, events=1_200, partitions=2, minutes=5.0)
    assert list(again.inputs()) == list(WORLD.inputs())
    assert list(World(seed=6, events=1_200, partitions=2, minutes=5.0).inputs()) != list(WORLD.inputs())
    assert plan(5, 10.0, 3) == plan(5, 10.0, 3) != plan(6, 10.0, 3)


def test_half_an_hour_has_the_strikes_that_are_asked_for() -> None:
    faults = Counter(strike.fault for strike in plan(0, 30.0, 3))
    assert faults[Fault.KILL] >= 100
    assert faults[Fault.BROKER] >= 10
    assert faults[Fault.ZOMBIE] + faults[Fault.RESTART] >= 20


def test_the_registry_is_struck_where_there_is_one() -> None:
    with_registry = Counter(strike.fault for strike in plan(0, 30.0, 3, registry=True))
    without = Counter(strike.fault for strike in plan(0, 30.0, 3))
    assert with_registry == without | {Fault.REGISTRY: 30}
