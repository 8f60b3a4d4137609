"""Derive each prediction from the outcomes before it, and each outcome from its prediction."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from pipeline.config.settings import Join as JoinSettings
from pipeline.config.topics import Topics
from pipeline.join.identity import identify_by
from pipeline.model.columns import ModelOutput
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.snapshot import pack
from pipeline.records.encoding import encode
from pipeline.records.fields import Status
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import Outcome, Prediction
from pipeline.recovery.libraries import Derivable
from pipeline.tools.audit.differences import AuditResult, field_difference, tensor_difference
from pipeline.tools.audit.epochs import SettingsEpochs
from pipeline.tools.audit.scores import ScoreCheck
from pipeline.tools.audit.topic_records import DecodedRecord

ROUNDING: Final = 1e-12
"""Largest difference between losses of different arithmetics, absolute or relative."""
DECISIONS_CHECKED: Final = "decisions to ask for a label derived again"
PREDICTIONS_CHECKED: Final = "predictions derived again"
OUTCOMES_CHECKED: Final = "outcomes compared with their prediction"
OUTCOMES_LEARNED: Final = "outcomes learned"
OTHER_ARITHMETIC: Final = "predictions made with another arithmetic, not derived again"
CHECKS: Final = (PREDICTIONS_CHECKED, OUTCOMES_CHECKED, OUTCOMES_LEARNED)
"""Checks that are reported even if their number is 0."""


class _Answered(NamedTuple):
    """A prediction that has an outcome, and the value that was learned; None if nothing was."""

    prediction: Prediction
    learned: float | None
    weight: float
    """The weight of its label."""


class Derivation:
    """Derivation of predictions and outcomes in the order in which they were written.

    A prediction was made when the model had learned `model_version` outcomes, so it comes before the outcome
    of that sequence. Records that are older than the given models are compared with other records, but not
    derived.

    Parameters
    ----------
    epochs
        Models of all epochs of settings. They learn the outcomes that they have not learned yet.
    topics
        Names of the topics.
    result
        Result to add differences to.
    join
        Settings of the join, which say what expired predictions and later labels teach.
    policy
        Policy by which labels were requested; None if all labels were learned.
    asked
        Number of labels requested before the first prediction; None if retention has deleted predictions, so
        that decisions cannot be derived.
    snapshot
        Outcomes in the snapshot, its bytes and its offset; None if there is none to compare with.
    derivable
        From where on outputs have the arithmetic of this process. Predictions before it are not derived, and
        the losses of outcomes before it may have other last bits.
    scores
        Check of what followers have answered; None without.
    """

    def __init__(
        self,
        epochs: SettingsEpochs,
        topics: Topics,
        result: AuditResult,
        *,
        join: JoinSettings,
        policy: LabelPolicy | None,
        asked: int | None,
        snapshot: tuple[int, bytes, int] | None,
        derivable: Derivable,
        scores: ScoreCheck | None = None,
    ) -> None:
        self.pending: dict[int, Prediction] = {}
        """Predictions without an outcome, by number."""
        self.predicted = 0
        """Number of predictions; of slates, of their items."""
        self.statuses: Counter[str] = Counter()
        """Number of outcomes by status."""
        self.unasked = 0
        """Number of labels that were joined, but not requested."""
        self.requested = asked
        """Number of predictions whose label was requested; None if it is unknown."""
        self._epochs = epochs
        self._begin = epochs.current.outcomes_learned
        self._join = join
        self._policy = policy
        self._correctable: OrderedDict[int, _Answered] = OrderedDict()
        """By sequence, predictions whose labels may be corrected."""
        self._snapshot = snapshot
        self._derivable = derivable
        self._scores = scores
        self._topics = topics
        self._types = OutputTypes.of(topics.stream)
        self._identify = identify_by(epochs.current.features.item_entities)
        self._result = result
        self._has_gap = False
        self._first_prediction: int | None = None

    def run(
        self, predictions: Iterator[DecodedRecord[Prediction]], outcomes: Iterator[DecodedRecord[Outcome]]
    ) -> Iterator[DecodedRecord[Prediction] | DecodedRecord[Outcome]]:
        """Check all records, and yield each of them in the order in which they were written.

        Parameters
        ----------
        predictions
            Predictions in sequence.
        outcomes
            Outcomes in sequence.

        Yields
        ------
        DecodedRecord
            Predictions and outcomes, checked.
        """
        self._result.checked.update(dict.fromkeys(CHECKS, 0))
        self._compare_snapshot()
        upcoming = next(predictions, None)
        for outcome in outcomes:
            self._check_gap(outcome)
            self._check_scores(outcome.record.sequence)
            while upcoming is not None and upcoming.record.model_version <= outcome.record.sequence:
                self._check_prediction(upcoming)
                yield upcoming
                upcoming = next(predictions, None)
            self._check_outcome(outcome)
            yield outcome
        while upcoming is not None:
            self._check_prediction(upcoming)
            yield upcoming
            upcoming = next(predictions, None)
        self._check_scores(self._epochs.current.outcomes_learned)
        if self._scores is not None:
            self._scores.finish()

    def _check_scores(self, version: int) -> None:
        if self._scores is not None:
            self._scores.check(version, self._epochs)

    def _check_prediction(self, decoded: DecodedRecord[Prediction]) -> None:
        written = decoded.record
        model = self._epochs.model_of_prediction(written.sequence)
        if self._first_prediction is None:
            self._first_prediction = written.sequence
        self.pending[written.number] = written
        before, predicted = self.requested, written.sequence
        if self._epochs.current.features.item_entities:
            predicted = self.predicted
        self.predicted += 1
        if before is not None:
            self.requested = before + (written.asked is True)
        if written.sequence < self._derivable.predictions:
            self._result.checked[OTHER_ARITHMETIC] += 1
            return
        if model.outcomes_learned < self._begin or written.model_version < self._begin:
            return
        if self._has_gap and written.model_version > model.outcomes_learned:
            return
        output = model.predict(written, written.features[model.features.running :])
        derived = msgspec.structs.replace(
            written,
            score=output.score,
            probability=output.probability,
            predicted=output.predicted,
            features=output.features,
            model_version=model.outcomes_learned,
            sequence=written.sequence,
            challengers=output.challengers,
            asked=self._asks(written, output, predicted, before),
        )
        self._result.checked[PREDICTIONS_CHECKED] += 1
        self._compare(derived, decoded, self._topics.predictions)

    def _asks(
        self, written: Prediction, output: ModelOutput, predicted: int, asked: int | None
    ) -> bool | None:
        """Derive whether the label was requested.

        `predicted` is the number of predictions before, with slates of items, and `asked` that of the labels
        requested for these, None if it is unknown.
        """
        if self._policy is None:
            return None
        if asked is None:
            return written.asked
        self._result.checked[DECISIONS_CHECKED] += 1
        return self._policy.asks(
            self._identify(written),
            output.score,
            output.features,
            predicted=predicted,
            asked=asked,
        )

    def _check_outcome(self, decoded: DecodedRecord[Outcome]) -> None:
        written = decoded.record
        self.statuses[written.status] += 1
        self.unasked += written.asked is False and written.status == "labelled"
        prediction = self.pending.pop(written.prediction_number, None)
        answered = self._correctable.pop(written.prediction_number, None) if written.corrects else None
        if prediction is None and answered is not None:
            prediction = answered.prediction
        if prediction is not None:
            self._result.checked[OUTCOMES_CHECKED] += 1
            self._compare(self._outcome_of(prediction, written, answered), decoded, self._topics.outcomes)
            self._keep_correctable(prediction, written)
        elif self._first_prediction is not None and written.prediction_sequence >= self._first_prediction:
            self._result.add_difference(
                self._topics.outcomes,
                decoded.source.offset,
                "a prediction that waits for its label",
                f"prediction_sequence {written.prediction_sequence}, which does not",
            )
        self._learn(written)

    def _keep_correctable(self, prediction: Prediction, written: Outcome) -> None:
        """Keep as many of the newest predictions as a worker may remember, if labels may be corrected."""
        if self._join.corrections == "off":
            return
        learned = None if written.label is None else written.watch_ratio or 0.0
        self._correctable[prediction.number] = _Answered(prediction, learned, written.weight)
        if len(self._correctable) > self._join.max_closed:
            self._correctable.popitem(last=False)

    def _check_gap(self, decoded: DecodedRecord[Outcome]) -> None:
        """Report a missing outcome: records after it cannot be derived."""
        sequence, learned = decoded.record.sequence, self._epochs.current.outcomes_learned
        if not self._has_gap and sequence > learned:
            self._has_gap = True
            expected = f"outcome {learned}, without which nothing after it can be derived"
            self._result.add_difference(
                self._topics.outcomes, decoded.source.offset, expected, f"outcome {sequence}"
            )

    def _learn(self, outcome: Outcome) -> None:
        if self._has_gap or outcome.sequence < self._begin:
            return
        self._epochs.learn_one(outcome)
        self._result.checked[OUTCOMES_LEARNED] += 1
        self._compare_snapshot()

    def _outcome_of(self, prediction: Prediction, written: Outcome, answered: _Answered | None) -> Outcome:
        """Derive an outcome from its prediction, and from the label that it holds."""
        ratio = written.watch_ratio
        model = self._epochs.model_of_outcome(written.sequence)
        target = model.target
        label = target.missing_label(self._join.on_missing) if ratio is None else target.label(ratio)
        if self._policy is not None and not self._policy.learns(prediction.asked, ratio is not None):
            label = None
        names = (name for name in prediction.__struct_fields__ if name != "sequence")
        fields: dict[str, Any] = {name: getattr(prediction, name) for name in names}
        if model.weighted:
            fields["weight"] = 1.0 if ratio is None else written.weight
            if answered is not None and answered.weight != 1.0:
                fields["former_weight"] = answered.weight
        make: Any = self._types.outcome  # whose label is that of the stream
        outcome: Outcome = make(
            **fields,
            prediction_sequence=prediction.sequence,
            watch_ratio=ratio,
            label=label,
            label_timestamp=None if ratio is None else written.label_timestamp,
            correct=None if label is None else target.correct(prediction.score, ratio or 0.0),
            loss=None if label is None else self._loss(model.loss(prediction.score, ratio or 0.0), written),
            status=self._status(ratio, answered),
            sequence=written.sequence,
            shared=written.shared,
            former=None if answered is None else answered.learned,
        )
        return outcome

    def _loss(self, derived: float, written: Outcome) -> float:
        """Return the derived loss, or the written one if another arithmetic may have rounded it otherwise."""
        other = written.sequence < self._derivable.outcomes and written.loss is not None
        if other and math.isclose(derived, written.loss or 0.0, rel_tol=ROUNDING, abs_tol=ROUNDING):
            return written.loss or 0.0
        return derived

    def _status(self, value: float | None, answered: _Answered | None) -> Status:
        if answered is not None:
            return "replaced" if self._join.corrections == "replace" else "corrected"
        return "expired" if value is None else "labelled"

    def _compare(
        self,
        derived: Prediction | Outcome,
        decoded: DecodedRecord[Prediction] | DecodedRecord[Outcome],
        topic: str,
    ) -> None:
        if encode(derived) != decoded.source.value:
            names = self._epochs.current.features.names
            self._result.add_difference(
                topic, decoded.source.offset, *field_difference(derived, decoded.record, names)
            )

    def _compare_snapshot(self) -> None:
        model = self._epochs.current
        if self._snapshot is None or model.outcomes_learned != self._snapshot[0]:
            return
        learned, data, offset = self._snapshot
        self._result.checked["snapshots compared with the model"] += 1
        derived = pack(model)
        if data != derived:
            expected = f"a snapshot of the model after {learned} outcomes"
            self._result.add_difference(
                self._topics.checkpoints, offset, expected, tensor_difference(derived, data)
            )
