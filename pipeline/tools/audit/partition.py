"""Audit one partition, given its records: no Kafka, no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pipeline.config.settings import Join as JoinSettings
from pipeline.features.feature_set import FeatureSet
from pipeline.join.identity import identify_by
from pipeline.model.label_policy import LabelPolicy
from pipeline.records.names import Fault
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import is_outcome, is_prediction
from pipeline.recovery.libraries import derivable_from
from pipeline.task.state import CORRECTED, ITEMS
from pipeline.tools.audit.dead_letters import DeadLetters
from pipeline.tools.audit.derivation import Derivation
from pipeline.tools.audit.differences import AuditResult
from pipeline.tools.audit.dispositions import (
    Input,
    InputDispositions,
    OutputIndex,
    OutputTopic,
    label_key,
    prediction_key,
)
from pipeline.tools.audit.epochs import SettingsEpochs
from pipeline.tools.audit.live_tables import LiveTableCheck
from pipeline.tools.audit.record_checks import LabelRequestCheck, ShareCheck
from pipeline.tools.audit.score_index import IndexedLine
from pipeline.tools.audit.scores import ScoreCheck
from pipeline.tools.audit.slates import read_predictions
from pipeline.tools.audit.state_check import OffsetBounds, check_state
from pipeline.tools.audit.topic_records import AuditInput, read_in_sequence


def audit(
    audit_input: AuditInput,
    epochs: SettingsEpochs,
    result: AuditResult,
    *,
    join: JoinSettings,
    policy: LabelPolicy | None = None,
    scores: Iterable[IndexedLine] | None = None,
) -> None:
    """Check all records of a partition. Without differences, the outputs follow from the inputs.

    Parameters
    ----------
    audit_input
        Records of the partition.
    epochs
        Models of all epochs of settings. If the current one was restored from a snapshot, predictions made
        before the snapshot are not derived.
    result
        Result to add checks and differences to.
    join
        Settings of the join, which say what expired predictions and later labels teach.
    policy
        Policy by which labels were requested; None if all labels were learned.
    scores
        What followers have answered, by model version; None for none to check.
    """
    stream, check = audit_input.topics.stream, None
    if scores is not None:
        tables = [audit_input.score_tables[name] for name in stream.tables]
        check = ScoreCheck(scores, stream, tables, result)
    _Audit(audit_input, epochs, result, join, policy, check).run()


class _Audit:
    """The steps of an audit, and the results that they pass on to one another."""

    def __init__(  # noqa: PLR0917 - the parameters of `audit`
        self,
        audit_input: AuditInput,
        epochs: SettingsEpochs,
        result: AuditResult,
        join: JoinSettings,
        policy: LabelPolicy | None,
        scores: ScoreCheck | None,
    ) -> None:
        self.audit_input = audit_input
        self.result = result
        self.bounds = OffsetBounds(audit_input.state)
        self.predicted, self.labelled = OutputIndex(), OutputIndex()
        snapshot, reference = None, audit_input.state.snapshot
        outcomes_learned = epochs.current.outcomes_learned
        if (
            reference is not None
            and audit_input.snapshot is not None
            and outcomes_learned < reference.outcomes_learned
        ):
            snapshot = (reference.outcomes_learned, audit_input.snapshot, reference.chunks[0])
        asked = 0 if audit_input.predictions.complete else None
        self.derivation = Derivation(
            epochs,
            audit_input.topics,
            self.result,
            join=join,
            policy=policy,
            asked=asked,
            snapshot=snapshot,
            derivable=derivable_from(audit_input.state),
            scores=scores,
        )

    def run(self) -> None:
        """Run all checks, reading each topic once."""
        dead_letters = DeadLetters(self.audit_input, self.result)
        self._read_outputs(dead_letters)
        interactions, labels = self._check_inputs(dead_letters)
        self._check_state(dead_letters, interactions, labels)

    def _read_outputs(self, dead_letters: DeadLetters) -> None:
        audit_input, result = self.audit_input, self.result
        topics, state = audit_input.topics, audit_input.state
        types = OutputTypes.of(topics.stream)
        predictions = read_predictions(
            audit_input.predictions, types, topics.predictions, state.predictions, result
        )
        outcomes = read_in_sequence(
            audit_input.outcomes, types.outcomes, types.key_of, topics.outcomes, state.outcomes, result
        )
        requests = LabelRequestCheck(
            read_in_sequence(
                audit_input.requests,
                types.requests,
                types.key_of,
                topics.label_requests,
                state.counters.get("asked", 0),
                result,
            ),
            audit_input.requests.complete,
            topics,
            result,
        )
        features = FeatureSet.of(topics.stream)
        identify = identify_by(features.item_entities)
        tables = LiveTableCheck(audit_input, features, dead_letters, result)
        shares = ShareCheck(topics.outcomes, result)
        for record, source in self.derivation.run(predictions, outcomes):
            self.bounds.note(record, source.offset)
            if is_prediction(record):
                self.predicted.add(record.event_id, prediction_key(record, features), source.offset)
                if features.tables:
                    tables.check(record, source.offset)
                requests.check(record)
                continue
            assert is_outcome(record)
            shares.check(record, source.offset)
            if record.status != "expired":
                self.labelled.add(identify(record), label_key(record), source.offset)
        requests.finish()
        tables.finish()

    def _check_inputs(self, dead_letters: DeadLetters) -> tuple[Counter[str], Counter[str]]:
        """Find the disposition of each input message; return the counts of interactions and of labels."""
        audit_input = self.audit_input
        topics = audit_input.topics
        waiting = {saved.offset: saved for saved in audit_input.state.waiting}
        predictions = OutputTopic(
            self.predicted, topics.predictions, "the prediction", audit_input.predictions.complete
        )
        outcomes = OutputTopic(self.labelled, topics.outcomes, "the outcome", audit_input.outcomes.complete)
        interactions = InputDispositions(
            Input.interactions(audit_input), predictions, dead_letters, {}, self.result
        )
        labels = InputDispositions(Input.labels(audit_input), outcomes, dead_letters, waiting, self.result)
        interactions.check()
        labels.check()
        return interactions.counts, labels.counts

    def _check_state(
        self, dead_letters: DeadLetters, interactions: Counter[str], labels: Counter[str]
    ) -> None:
        audit_input, statuses = self.audit_input, self.derivation.statuses
        counted = Counter(
            {
                "interactions": interactions["messages"],
                "labels": labels["messages"],
                "predictions": audit_input.state.predictions,
                ITEMS: self.derivation.predicted,
                "labelled": statuses["labelled"],
                "expired": statuses["expired"],
                CORRECTED: statuses["corrected"] + statuses["replaced"],
                "duplicate_interactions": interactions["repeated"],
                "duplicate_labels": labels["repeated"],
                "asked": self.derivation.requested or 0,
                "unasked": self.derivation.unasked,
                **dead_letters.faults,
            }
        )
        unknown: list[str] = []
        for records, counters in (
            (audit_input.interactions, ("interactions", "duplicate_interactions")),
            (audit_input.labels, ("labels", "duplicate_labels")),
            (audit_input.predictions, ("duplicate_interactions", "asked", ITEMS)),
            (audit_input.outcomes, ("labelled", "expired", CORRECTED, "duplicate_labels", "unasked")),
            (audit_input.dead_letters, (*Fault, "duplicate_interactions", "duplicate_labels")),
        ):
            unknown += [] if records.complete else counters
        check_state(
            audit_input,
            self.result,
            bounds=self.bounds,
            pending=self.derivation.pending,
            counted=counted,
            unknown=unknown,
        )
