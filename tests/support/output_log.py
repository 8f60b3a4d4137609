"""The topics that a partition writes, in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256

import msgspec

from forks import ForksSettings
from pipeline.config.settings import Join as JoinSettings
from pipeline.config.stream import KUAIREC, Stream
from pipeline.config.topics import Topics
from pipeline.features.feature_set import FeatureSet
from pipeline.join.spill import SpilledPredictions
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.model import Model
from pipeline.model.settings_text import learner_text
from pipeline.model.snapshot import pack
from pipeline.records.encoding import encode
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import Outcome, Share
from pipeline.recovery.checkpoint_writer import next_slot
from pipeline.recovery.restoration import TaskRestorer
from pipeline.recovery.state_reader import read_snapshot
from pipeline.task.batch import Batch
from pipeline.task.live_tables import LiveTable
from pipeline.task.plan import DeadLetter
from pipeline.task.sharing import SharingSettings
from pipeline.task.state import SnapshotReference, State
from pipeline.task.task import Task
from pipeline.worker.encoder import RecordEncoder
from tests.support.builders import LEARNER, Written, join_settings, model_under, new_model
from tests.support.memory_log import Slot, memory_log, output_messages, snapshot_messages


@dataclass
class OutputLog:
    """Topics of one partition, written a transaction at a time, as the worker does it.

    A transaction's marker takes an offset of its own. The state record of a batch is made before the
    offsets of the batch are known to the task.
    """

    predictions: list[Slot] = field(default_factory=list)
    outcomes: list[Slot] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    snapshots: list[bytes] = field(default_factory=list)
    state: State | None = None
    settings: dict[str, str] = field(default_factory=partial(learner_text, LEARNER))
    """What state records say that the outputs depend on."""
    shares: list[Share] = field(default_factory=list)
    policy: LabelPolicy | None = None
    """Which labels are asked for."""
    requests: list[Slot] = field(default_factory=list)
    interval: int | None = None
    """Outcomes in a share for two other partitions; None where nothing is shared."""
    align: int | None = None
    """Milliseconds in a window after which shares are learned; None where they are learned as they come."""
    encoder: RecordEncoder = field(default_factory=RecordEncoder)
    """Of the task that writes at present."""
    make_spilled: Callable[[], SpilledPredictions] | None = None
    """Makes the place to which predictions are spilled; None to hold all in memory."""
    stream: Stream = KUAIREC
    """KuaiRec's definition, or one that has its features, unless `make_model` is given."""
    make_model: Callable[[], Model] | None = None
    """Makes a model that has learned nothing; None for one of the settings."""

    def __post_init__(self) -> None:
        """Encode with the types of the stream."""
        self.encoder = RecordEncoder(self.types)

    @property
    def types(self) -> OutputTypes:
        """The types of the stream's outputs."""
        return OutputTypes.of(self.stream)

    def commit(self, task: Task, batch: Batch, snapshot: bool) -> None:
        """Write a batch, and the model if so asked."""
        encoded = self.encoder.encode(batch)
        first_prediction = _append(self.predictions, encoded.predictions.values)
        first_outcome = _append(self.outcomes, encoded.outcomes.values)
        _append(self.requests, encoded.requests.values)
        self.dead_letters += batch.dead_letters
        self.shares += [self.types.shares.decode(encode(share)) for share in batch.shares]
        if snapshot:
            offset = task.outcome_offsets.floor(task.model.outcomes_learned)
            task.snapshot_written(self._write(task.model, task.snapshot, offset))
        self.state = msgspec.json.decode(encode(task.state(self.settings)), type=State)
        self.encoder.follow(task.join)
        task.note_offsets(batch, first_prediction, first_outcome)

    def _write(
        self, model: Model, before: SnapshotReference | None, outcome_offset: int
    ) -> SnapshotReference:
        """Write a model whole after another."""
        self.snapshots.append(data := pack(model))
        chunks, digest = [len(self.snapshots) - 1], sha256(data).hexdigest()
        return SnapshotReference(chunks, digest, next_slot(before), model.outcomes_learned, outcome_offset)

    def install(self, learner: ForksSettings) -> Task:
        """Fold all outcomes under other settings, go on from that model, and restore."""
        model = new_model(learner)
        for _, value in self.outcomes:
            model.learn_one(msgspec.json.decode(value, type=Outcome))
        return self.go_on_from(model, learner_text(learner))

    def go_on_from(self, model: Model, settings: dict[str, str]) -> Task:
        """Begin an epoch under other settings with a model of them, and restore."""
        assert self.state is not None
        self.settings = settings
        reference = self._write(model, self.state.snapshot, self.state.outcome_offset)
        state = msgspec.structs.replace(self.state.with_settings(self.settings), snapshot=reference)
        self.state = msgspec.json.decode(encode(state), type=State)
        return self.restore()

    def restore(self, settings: JoinSettings | None = None, tables: Sequence[LiveTable] = ()) -> Task:
        """Restore the task as it was at the last commit, from what was written, with tables as they were."""
        assert self.state is not None
        topics = Topics(stream=self.stream)
        messages = {
            topics.checkpoints: snapshot_messages(dict(enumerate(self.snapshots))),
            topics.predictions: output_messages(self.predictions),
            topics.outcomes: output_messages(self.outcomes),
        }
        log = memory_log(messages, topics)
        make = self.make_model or partial(model_under, self.settings, self.stream)
        model, state = read_snapshot(log, self.state, make)
        task = Task.restore(
            copied(state),
            model,
            settings or join_settings(),
            policy=self.policy,
            sharing=self.sharing,
            spilled=self.make_spilled() if self.make_spilled else None,
            tables=tables,
            labels=InputDecoders.of(self.stream).labels,
        )
        self.encoder = RecordEncoder(self.types)
        most_items = self.stream.interactions.max_items
        restoration = TaskRestorer(task, state, self.encoder, most_items)
        for _ in restoration.read(log):
            pass
        return restoration.finish()

    @property
    def sharing(self) -> SharingSettings | None:
        """What is shared, with two other partitions."""
        if not self.interval:
            return None
        return SharingSettings(
            3,
            self.interval,
            FeatureSet.of(self.stream),
            self.types,
            self.align,
            max_items=self.stream.interactions.max_items if self.stream.has_slates else 1,
        )

    @property
    def written(self) -> Written:
        """All that was written, without offsets."""
        return Written(
            [value for _, value in self.predictions],
            [value for _, value in self.outcomes],
            self.dead_letters,
            [value for _, value in self.requests],
        )


def copied(state: State) -> State:
    """Return a copy that shares no position with the original: tasks move theirs."""
    return msgspec.json.decode(encode(state), type=State)


def _append(topic: list[Slot], values: Sequence[bytes]) -> int | None:
    if not values:
        return None
    first = topic[-1][0] + 2 if topic else 0
    topic.extend((first + number, value) for number, value in enumerate(values))
    return first
