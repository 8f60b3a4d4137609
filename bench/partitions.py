"""What it costs that each partition learns from its own users only, and what sharing brings back.

Users fall into partitions as they do in Kafka. Events of all partitions come in time order, labels when the
play has ended. What a partition publishes reaches the others at once; they fold it with their next outcome.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
import numpy as np

from bench.options import Options
from forks.arrays import FloatArray, IntArray
from forks.validation import auc
from pipeline.config.settings import AUTO_INTERVAL, Learner
from pipeline.features.binary import TARGET
from pipeline.features.tables import Tables
from pipeline.kafka.partitioner import partition
from pipeline.model.learner_settings import learner_settings
from pipeline.model.model import Model
from pipeline.model.warm_up import warm_up
from pipeline.records.encoding import encode
from pipeline.records.kuairec import KuaiRecInteraction
from pipeline.records.outputs import Outcome
from pipeline.sources.kuairec import read_events
from pipeline.sources.schedule import merge_by_time
from pipeline.sources.synth.files import write_files
from pipeline.sources.synth.size import Size
from pipeline.task.inbox import Inbox
from pipeline.task.sharing import Outbox, SharingSettings

PARTITIONS = (2, 4, 8, 16)
INTERVALS = (10, 20, 50, 100)
INTERVAL = AUTO_INTERVAL
"""Chosen on invented data; the real rows had no say."""


class Sharing(Enum):
    """What partitions tell one another."""

    NOTHING = "alone"
    COUNTS = "counts"
    """What labels come to for each video."""
    ALL = "counts and examples"


class Plays(NamedTuple):
    """Usable rows, and the order in which they and their labels come.

    Parameters
    ----------
    interactions : n
    watch_ratios : (n,) float64
    order : (2 n,) int64, i for event i, n + i for its label
    tables : the videos' tags
    """

    interactions: list[KuaiRecInteraction]
    watch_ratios: FloatArray
    order: IntArray
    tables: Tables

    @classmethod
    def read(cls, folder: Path) -> Plays:
        """Return the rows of a folder in KuaiRec's format, labels delayed by the play."""
        frame = read_events(folder).frame
        rows = enumerate(frame.select("user_id", "video_id", "timestamp").rows())
        return cls(
            [KuaiRecInteraction(number, user, video, time, 0.0) for number, (user, video, time) in rows],
            frame["watch_ratio"].to_numpy(),
            merge_by_time(frame["timestamp"].to_numpy(), frame["label_timestamp"].to_numpy()),
            Tables(tags=folder / "item_categories.csv"),
        )


class Played(NamedTuple):
    """What came of the plays.

    Parameters
    ----------
    scores : (n,) float64, as each user's partition said it
    bytes_published : published for each outcome, in the mean
    """

    scores: FloatArray
    bytes_published: float


class Partition:
    """A model with its outbox and its inbox."""

    def __init__(self, number: int, partitions: int, interval: int, tables: Tables) -> None:
        self.model = Model(learner_settings(Learner(), tables.columns), tables, max_entities=1_000_000)
        self.outbox = Outbox(number, SharingSettings(max(partitions, 2), interval), 0)
        self.inbox = Inbox(number, {})
        self.bytes_published = 0
        self._published = 0

    def learn(self, outcome: Outcome) -> None:
        """Learn what the others have published, and then the next outcome."""
        whole = msgspec.structs.replace(
            outcome, sequence=self.model.outcomes_learned, shared=self.inbox.drain() or None
        )
        self.model.learn_one(whole)
        self.outbox.add(whole.example)

    def publish(self, others: list[Partition], sharing: Sharing) -> None:
        """Publish what is ready."""
        for share in self.outbox.drain():
            if sharing is Sharing.COUNTS:
                share = msgspec.structs.replace(share, examples=[])  # noqa: PLW2901 - the same share, without
            self.bytes_published += len(encode(share))
            for other in others:
                other.inbox.offer(share, self._published, 0)
            self._published += 1


def play(plays: Plays, partitions: int, sharing: Sharing, interval: int = INTERVAL) -> Played:
    """Let each event be judged by its user's partition, and learned there when its label comes."""
    members = [Partition(number, partitions, interval, plays.tables) for number in range(partitions)]
    own = [partition(str(each.user_id).encode(), partitions) for each in plays.interactions]
    n = len(plays.interactions)
    made: dict[int, Outcome] = {}
    scores, ratios = np.empty(n), plays.watch_ratios.tolist()
    for step in plays.order.tolist():
        if step < n:
            made[step] = _predicted_outcome(plays.interactions[step], members[own[step]].model, ratios[step])
            scores[step] = made[step].score
        else:
            learner = members[own[step - n]]
            learner.learn(made.pop(step - n))
            if sharing is not Sharing.NOTHING:
                learner.publish(members, sharing)
    return Played(scores, sum(each.bytes_published for each in members) / n)


def _predicted_outcome(interaction: KuaiRecInteraction, model: Model, watch_ratio: float) -> Outcome:
    """Return the outcome that an event will have, all but its sequence."""
    output = model.predict(interaction)
    watched = TARGET.is_positive(watch_ratio)
    return Outcome(
        interaction.event_id,
        interaction.user_id,
        interaction.video_id,
        interaction.timestamp,
        output.score,
        output.probability,
        output.score > 0.0,
        output.features,
        model_version=model.outcomes_learned,
        prediction_sequence=0,
        watch_ratio=watch_ratio,
        label=watched,
        label_timestamp=interaction.timestamp,
        correct=watched == output.predicted,
        loss=None,
        status="labelled",
        sequence=0,
    )


def run(options: Options) -> dict[str, Any]:
    """Return mistakes and AUC by partitions and what they share, and on invented data by interval."""
    plays = Plays.read(options.folder("kuairec"))
    warm_up(learner_settings(Learner(), plays.tables.columns))
    return {
        "events": len(plays.interactions),
        "interval": INTERVAL,
        "rows": [
            {"partitions": count}
            | {how.value: _figures(plays, count, how, INTERVAL, options) for how in sharings}
            for count, sharings in ((1, [Sharing.NOTHING]), *((count, list(Sharing)) for count in PARTITIONS))
        ],
        "invented": _invented(options),
    }


def _invented(options: Options) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        write_files(Path(folder), Size())
        plays = Plays.read(Path(folder))
    return {
        "events": len(plays.interactions),
        "one partition": _figures(plays, 1, Sharing.NOTHING, INTERVAL, options),
        "rows": [
            {"partitions": count, "interval": interval}
            | _figures(plays, count, Sharing.ALL, interval, options)
            for count in (8, 16)
            for interval in INTERVALS
        ],
    }


def _figures(
    plays: Plays, partitions: int, sharing: Sharing, interval: int, options: Options
) -> dict[str, float | None]:
    played, watched = play(plays, partitions, sharing, interval), TARGET.are_positive(plays.watch_ratios)
    mistakes = 100.0 * float(np.mean((played.scores > 0) != watched))
    area = auc(played.scores, watched)
    figures = {"mistakes": round(mistakes, 3), "auc": None if area is None else round(area, 4)}
    if sharing is not Sharing.NOTHING:
        figures["bytes_published"] = round(played.bytes_published, 1)
    options.say(
        f"{len(plays.interactions)} events, {partitions} partitions, {sharing.value}, {interval}: {figures}"
    )
    return figures
