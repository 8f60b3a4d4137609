"""Messages and tasks, for the tests of the pure core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import msgspec

from forks import ForksSettings
from pipeline.config.settings import Challenger, Learner
from pipeline.config.settings import Join as JoinSettings
from pipeline.config.stream import KUAIREC, Stream
from pipeline.features.feature_set import KUAIREC_FEATURES, FeatureSet
from pipeline.features.tables import Tables
from pipeline.join.spill import SpilledPredictions
from pipeline.model.challengers import resolve_challengers
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.learner_settings import learner_settings
from pipeline.model.model import Model
from pipeline.model.settings_text import challengers_from, learner_from
from pipeline.model.shadow import ChallengerSettings
from pipeline.records.decoding import INTERACTION_DECODER, LABEL_DECODER, InputDecoder
from pipeline.records.encoding import encode
from pipeline.records.fields import Id
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import RawMessage
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import Outcome, Prediction
from pipeline.task.batch import Batch
from pipeline.task.plan import DeadLetter
from pipeline.task.record_queue import Position
from pipeline.task.sharing import SharingSettings
from pipeline.task.task import Task
from pipeline.worker.encoder import RecordEncoder
from tests.support.entries import Entry, entries, queued

Message: TypeAlias = KuaiRecInteraction | WatchLabel | bytes | None
"""A record, or what is to be taken for one."""
LATEST = 10**9
ALL = 10**9
"""More messages than any test has."""


def interaction(event_id: Id, at: int, user_id: Id = 1, video_id: Id = 1) -> KuaiRecInteraction:
    return KuaiRecInteraction(event_id, user_id, video_id, at, 10_000.0)


def label(event_id: Id, at: int, ratio: float = 1.0, user_id: Id = 1, video_id: Id = 1) -> WatchLabel:
    return WatchLabel(event_id, user_id, video_id, at, ratio * 10_000.0, ratio)


def join_settings(**changes: Any) -> JoinSettings:
    """100 ms of window, 30 ms of patience."""
    return JoinSettings.model_validate({"window": "100ms", "early": "30ms", "max_jump": "1s"} | changes)


def small_learner(**changes: Any) -> ForksSettings:
    """Return a learner that leaves stage 1 after a few events, and changes its map every third."""
    return learner_settings(
        Learner.model_validate({"budget": 4, "landmarks": 2, "rank": 2, "cycle": 3} | changes), 0
    )


LEARNER = small_learner()

WEIGHTED = Stream.model_validate(
    KUAIREC.model_dump() | {"labels": KUAIREC.labels.model_dump() | {"weight": "/weight"}}
)
"""KuaiRec's stream, but for weights of labels."""


CHALLENGERS: Mapping[str, ChallengerSettings] = resolve_challengers(
    {
        "small": Challenger.model_validate({"learner": "nogd", "budget": 4, "rank": 2}),
        "wider": Challenger.model_validate(
            {"learner": "forks", "budget": 6, "rank": 3, "landmarks": 3, "cycle": 3, "loss": "squared"}
        ),
    },
    0,
)
"""A rival, and another one of FORKS, which see all that they do in a few events."""


def new_model(
    learner: ForksSettings = LEARNER,
    max_entities: int = 3,
    challengers: Mapping[str, ChallengerSettings] = MappingProxyType({}),
    *,
    weighted: bool = False,
    features: FeatureSet = KUAIREC_FEATURES,
) -> Model:
    return Model(learner, Tables(), max_entities, challengers, weighted=weighted, features=features)


def model_under(settings: Mapping[str, str], stream: Stream = KUAIREC) -> Model:
    """Return a model of the settings in a state record."""
    learner, challengers = learner_from(settings), challengers_from(settings)
    features = FeatureSet.of(stream)
    return new_model(learner, challengers=challengers, weighted=stream.labels.weighted, features=features)


def new_task(
    settings: JoinSettings | None = None,
    partition: int = 0,
    model: Model | None = None,
    policy: LabelPolicy | None = None,
    sharing: SharingSettings | None = None,
    *,
    spilled: SpilledPredictions | None = None,
) -> Task:
    return Task(
        partition,
        model or new_model(),
        settings or join_settings(),
        Position(0),
        Position(0),
        policy=policy,
        sharing=sharing,
        spilled=spilled,
    )


def source(topic: str, offset: int, record: Message) -> RawMessage:
    """Return a message at an offset."""
    if isinstance(record, KuaiRecInteraction | WatchLabel):
        return RawMessage(topic, 0, offset, str(record.user_id).encode(), encode(record), [])
    return RawMessage(topic, 0, offset, b"1", record, [("trace", b"\xff"), ("empty", None)])


@dataclass(frozen=True)
class Inputs:
    """What lies in both inputs of a partition; offsets have gaps, as after transactions."""

    interactions: list[Entry]
    labels: list[Entry]

    def from_positions(self, interactions: int, labels: int) -> Inputs:
        """Return the messages from two offsets on."""
        return Inputs(
            [entry for entry in self.interactions if entry.source.offset >= interactions],
            [entry for entry in self.labels if entry.source.offset >= labels],
        )

    def __len__(self) -> int:
        return len(self.interactions) + len(self.labels)


def inputs(interactions: Sequence[Message], labels: Sequence[Message]) -> Inputs:
    """Return the messages with every second offset, decoded."""
    return Inputs(
        _entries("interactions", interactions, INTERACTION_DECODER),
        _entries("watch-labels", labels, LABEL_DECODER),
    )


def _entries(topic: str, messages: Sequence[Message], decoder: InputDecoder[Any]) -> list[Entry]:
    sources = [source(topic, 2 * number, message) for number, message in enumerate(messages)]
    return entries(sources, decoder, LATEST)


WEIGHTS: Sequence[float | None] = (1, 0.5, 0, 3.0, 1, 2.25, 40, 1000, -1, None)
"""Weights of labels, the last two of which are refused."""


def with_weights(given: Inputs, weights: Sequence[float | None] = WEIGHTS) -> Inputs:
    """Return the messages of `WEIGHTED`, with labels that have these weights."""
    decoders = InputDecoders.of(WEIGHTED)

    def weigh(number: int, source: RawMessage) -> RawMessage:
        if not (source.value or b"").endswith(b"}") or source.value == b"{}":
            return source
        label = msgspec.json.decode(source.value or b"")
        return source._replace(value=encode(label | {"weight": weights[number * 7 % len(weights)]}))

    labels = [weigh(number, entry.source) for number, entry in enumerate(given.labels)]
    return Inputs(
        entries([entry.source for entry in given.interactions], decoders.interactions, LATEST),
        entries(labels, decoders.labels, LATEST),
    )


def feed_all(task: Task, given: Inputs) -> None:
    """Give a task all that there is."""
    task.interactions.feed(queued(given.interactions))
    task.labels.feed(queued(given.labels))
    task.interactions.at_end = task.labels.at_end = True


class BatchRecords(NamedTuple):
    """A batch as readers of the topics get it."""

    predictions: list[Prediction]
    outcomes: list[Outcome]
    dead_letters: Sequence[DeadLetter]
    steps: int


def records_of(batch: Batch, encoder: RecordEncoder | None = None) -> BatchRecords:
    """Return the records that a batch writes; an encoder is needed where others were written before."""
    encoded = (RecordEncoder() if encoder is None else encoder).encode(batch)
    predictions, outcomes = encoded.predictions.values, encoded.outcomes.values
    return BatchRecords(
        [msgspec.json.decode(value, type=Prediction) for value in predictions],
        [msgspec.json.decode(value, type=Outcome) for value in outcomes],
        batch.dead_letters,
        batch.steps,
    )


class Written(NamedTuple):
    """A batch as bytes."""

    predictions: list[bytes]
    outcomes: list[bytes]
    dead_letters: list[DeadLetter]
    requests: list[bytes]

    @classmethod
    def of(cls, batches: Sequence[Batch], stream: Stream = KUAIREC) -> Written:
        """Return what the first batches of a task write."""
        encoder = RecordEncoder(OutputTypes.of(stream))
        encoded = [encoder.encode(batch) for batch in batches]
        return cls(
            [value for batch in encoded for value in batch.predictions.values],
            [value for batch in encoded for value in batch.outcomes.values],
            [dead_letter for batch in batches for dead_letter in batch.dead_letters],
            [value for batch in encoded for value in batch.requests.values],
        )


def run(
    given: Inputs,
    settings: JoinSettings | None = None,
    model: Model | None = None,
    policy: LabelPolicy | None = None,
) -> tuple[Task, Written]:
    """Everything in one go."""
    task = new_task(settings, model=model, policy=policy)
    feed_all(task, given)
    return task, Written.of([task.advance(ALL)], WEIGHTED if task.model.weighted else KUAIREC)
