"""What a partition's predictions and outcomes say about its state, while a model learns them. No Kafka."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pipeline.config.settings import Join as JoinSettings
from pipeline.errors import StateError
from pipeline.join.identity import Identity
from pipeline.join.records import Pending
from pipeline.join.tables import Join
from pipeline.model.model import Model
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.outputs import Outcome, Prediction
from pipeline.records.slates import STRIDE
from pipeline.recovery.restoration import INDEX_INTERVAL
from pipeline.task.state import CORRECTED, ITEMS, OffsetIndex
from pipeline.tools.audit.dispositions import OutputIndex, label_key, prediction_key
from pipeline.tools.relearning import relearn


class OutputSummary:
    """Summary of all predictions and outcomes of a partition.

    Every prediction since ``since`` is made again before its outcome is learned. So a wrong setting is found.

    Parameters
    ----------
    partition
        Number of the partition.
    model
        Model that has learned nothing, and learns all outcomes.
    join
        Settings of the join.
    since
        Sequence of the first prediction that the present settings and this arithmetic made.

    Attributes
    ----------
    predictions, outcomes
        Their numbers.
    pending
        Predictions without an outcome, by number.
    predicted, labelled
        Input messages that predictions and labelled outcomes were made from.
    counters
        Counters of a state record that follow from the outputs alone.
    learned
        By other partition, the end of the last share that was learned.
    slates
        Whether predictions are of slates' items.
    latest
        Latest time of an interaction or a label that was used, in milliseconds.
    """

    def __init__(self, partition: int, model: Model, join: JoinSettings, since: int) -> None:
        self.predictions = self.outcomes = 0
        self.pending: dict[int, Prediction] = {}
        self.predicted, self.labelled = OutputIndex(), OutputIndex()
        self.counters: Counter[str] = Counter()
        self.learned: dict[int, int] = {}
        self.tables: dict[str, int] = {}
        """The offset up to which the last prediction had applied each live table."""
        self.latest = -1
        self.prediction_offsets, self.outcome_offsets = OffsetIndex(0), OffsetIndex(0)
        self.slates = bool(model.features.item_entities)
        self.join = Join(join, item_entities=model.features.item_entities)
        """Closed events, as far as they are remembered; `finish` adds the predictions that wait."""
        self.remembered_until: dict[Identity, int] = {}
        """By closed event, or item of a slate, the stream time until which it is remembered."""
        self._stride = STRIDE if self.slates else 1
        self._partition = partition
        self._model = model
        self._since = since

    def read(
        self, predictions: Iterable[tuple[int, Prediction]], outcomes: Iterable[tuple[int, Outcome]]
    ) -> Iterator[int]:
        """Read all records, each with its offset, and yield the number of outcomes learned so far.

        Raises
        ------
        StateError
            A record is missing or cannot be derived again.
        """
        last: list[Outcome] = []
        upcoming = self._read_predictions(predictions)
        for scored in relearn(self._model, upcoming, self._read_outcomes(outcomes, last)):
            _, written, derived, *_ = scored
            self._close(last[0], written == derived)
            yield self.outcomes
        for _ in upcoming:
            pass

    def _read_predictions(self, records: Iterable[tuple[int, Prediction]]) -> Iterator[Prediction]:
        for offset, prediction in records:
            sequence, begins = prediction.sequence, prediction.number % self._stride == 0
            self._check_sequence("prediction", sequence, self.predictions - (not begins))
            self.predictions += begins
            self.counters[ITEMS] += self.slates
            self.pending[prediction.number] = prediction
            self.predicted.add(prediction.event_id, prediction_key(prediction, self._model.features), offset)
            self.latest = max(self.latest, prediction.timestamp)
            self.tables = getattr(prediction, "tables", self.tables)
            self.counters["asked"] += prediction.asked is True
            if begins and sequence % INDEX_INTERVAL == 0:
                self.prediction_offsets.add(sequence, offset)
            yield prediction

    def _read_outcomes(
        self, records: Iterable[tuple[int, Outcome]], last: list[Outcome]
    ) -> Iterator[Outcome]:
        for offset, outcome in records:
            sequence = outcome.sequence
            self._check_sequence("outcome", sequence, self.outcomes)
            self.outcomes += 1
            if sequence % INDEX_INTERVAL == 0:
                self.outcome_offsets.add(sequence, offset)
            if outcome.status != "expired":
                self.labelled.add(self.join.identify(outcome), label_key(outcome), offset)
            last[:] = [outcome]
            yield outcome

    def _check_sequence(self, kind: str, sequence: int, expected: int) -> None:
        if sequence != expected:
            raise StateError(
                f"{kind} {expected} of partition {self._partition} is missing, {kind} {sequence} comes "
                "instead: without all of them the state cannot be derived again"
            )

    def _close(self, outcome: Outcome, derived: bool) -> None:
        names = set(self._model.challengers)
        if outcome.prediction_sequence >= self._since and not (
            derived and set(outcome.challengers or ()) == names
        ):
            raise StateError(
                f"prediction {outcome.prediction_sequence} of partition {self._partition} does not follow "
                "from the outcomes before it under these settings: the group ran under others, which the "
                "lost state record named, or with another release's arithmetic. Give this command the "
                "workers' settings. If settings or arithmetic were changed during the life of the group, the "
                "state cannot be derived again: replay the inputs with another kafka.group and another "
                "kafka.prefix"
            )
        self.pending.pop(outcome.prediction_number, None)  # that of a correction has its outcome already
        self.join.remember_outcomes([outcome], stream_time=NO_TIMESTAMP)
        label_timestamp = NO_TIMESTAMP if outcome.label_timestamp is None else outcome.label_timestamp
        due = np.array([outcome.timestamp + self.join.window])
        until = self.join.remembered_until(due, np.array([label_timestamp]), np.array([outcome.corrects]))
        self.remembered_until[self.join.identify(outcome)] = int(until[0])
        self.latest = max(self.latest, outcome.label_timestamp or -1)
        self.counters[CORRECTED if outcome.corrects else outcome.status] += 1
        self.counters["unasked"] += outcome.asked is False and outcome.status == "labelled"
        for share in outcome.shared or ():
            self.learned[share.partition] = max(share.until, self.learned.get(share.partition, 0))

    def finish(self, stream_time: int, published: int | None) -> dict[str, Any]:
        """Return the fields of a state record that say from where a restart has to read.

        Parameters
        ----------
        stream_time
            Stream time, in milliseconds.
        published
            Outcomes that were shared with the other partitions; None where nothing is shared.
        """
        self.join.open_all([*map(Pending.of, self.pending.values())])
        self.join.forget(stream_time)
        number, outcomes_from = self.join.lowest_needed(self.predictions * self._stride, self.outcomes)
        pending_from = number // self._stride
        outcomes_from = outcomes_from if published is None else min(outcomes_from, published)
        return {
            "predictions": self.predictions,
            "outcomes": self.outcomes,
            "pending": len(self.pending),
            "pending_from": pending_from,
            "outcomes_from": outcomes_from,
            "prediction_offset": self.prediction_offsets.floor(pending_from),
            "outcome_offset": self.outcome_offsets.floor(outcomes_from),
        }
