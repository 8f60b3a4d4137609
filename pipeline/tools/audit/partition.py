"""The audit of one partition, from records alone: no Kafka, no clock."""

from __future__ import annotations

from collections import Counter

import msgspec

from pipeline.model.label_policy import Policy
from pipeline.records.outputs import LabelRequest, Outcome, Prediction
from pipeline.tools.audit.dead_letters import FAULTS, JOIN_FAULTS, Letters
from pipeline.tools.audit.derivation import Derivation
from pipeline.tools.audit.differences import Ledger
from pipeline.tools.audit.dispositions import Claimed, Claims, Fates, Input, key_of, label_key
from pipeline.tools.audit.epochs import Eras
from pipeline.tools.audit.record_checks import Requests, Shares
from pipeline.tools.audit.state_check import Marks, check_state
from pipeline.tools.audit.topic_records import Evidence, numbered

PREDICTIONS = msgspec.json.Decoder(Prediction)
OUTCOMES = msgspec.json.Decoder(Outcome)
REQUESTS = msgspec.json.Decoder(LabelRequest)


def audit(
    evidence: Evidence, eras: Eras, ledger: Ledger, *, teach_missing: bool, policy: Policy | None = None
) -> None:
    """Check everything that a partition's topics hold.

    Parameters
    ----------
    evidence
        What they hold.
    eras
        The models of all eras. Where the present one is as the snapshot has it, what was predicted before
        is not derived again.
    ledger
        Where to note what was checked and what differs. Without differences, the outputs follow from
        the inputs.
    teach_missing
        Whether an expired prediction counts as not watched.
    policy
        Which labels were asked for; None if all were learned as they came.
    """
    _Audit(evidence, eras, ledger, teach_missing, policy).run()


class _Audit:
    """The parts of an audit, and what they hand on to one another."""

    def __init__(
        self, evidence: Evidence, eras: Eras, ledger: Ledger, teach_missing: bool, policy: Policy | None
    ) -> None:
        self.evidence = evidence
        self.ledger = ledger
        self.marks = Marks(evidence.state)
        self.predicted, self.labelled = Claims(), Claims()
        snapshot, reference = None, evidence.state.snapshot
        folded = eras.present.folded
        if reference is not None and evidence.snapshot is not None and folded < reference.folded:
            snapshot = (reference.folded, evidence.snapshot, reference.chunks[0])
        asked = 0 if evidence.predictions.whole else None
        self.derivation = Derivation(
            eras,
            evidence.topics,
            self.ledger,
            teach_missing=teach_missing,
            policy=policy,
            asked=asked,
            snapshot=snapshot,
        )

    def run(self) -> None:
        """All checks, each topic read once."""
        self._read_outputs()
        letters = Letters(self.evidence, self.ledger)
        interactions, labels = self._check_inputs(letters)
        self._check_state(letters, interactions, labels)

    def _read_outputs(self) -> None:
        evidence, ledger = self.evidence, self.ledger
        topics, state = evidence.topics, evidence.state
        predictions = numbered(
            evidence.predictions, PREDICTIONS, topics.predictions, state.predictions, ledger
        )
        outcomes = numbered(evidence.outcomes, OUTCOMES, topics.outcomes, state.outcomes, ledger)
        requests = Requests(
            numbered(
                evidence.requests, REQUESTS, topics.label_requests, state.counters.get("asked", 0), ledger
            ),
            evidence.requests.whole,
            topics.label_requests,
            ledger,
        )
        shares = Shares(topics.outcomes, ledger)
        for record, source in self.derivation.run(predictions, outcomes):
            self.marks.note(record, source.offset)
            if isinstance(record, Prediction):
                self.predicted.add(record.event_id, key_of(record), source.offset)
                requests.check(record)
                continue
            shares.check(record, source.offset)
            if record.status == "labelled":
                self.labelled.add(record.event_id, label_key(record), source.offset)
        requests.finish()

    def _check_inputs(self, letters: Letters) -> tuple[Counter[str], Counter[str]]:
        """What was counted in interactions, and in labels."""
        evidence = self.evidence
        topics = evidence.topics
        waiting = {saved.offset: saved for saved in evidence.state.waiting}
        predictions = Claimed(
            self.predicted, topics.predictions, "the prediction", evidence.predictions.whole
        )
        outcomes = Claimed(self.labelled, topics.outcomes, "the outcome", evidence.outcomes.whole)
        interactions = Fates(Input.interactions(evidence), predictions, letters, {}, self.ledger)
        labels = Fates(Input.labels(evidence), outcomes, letters, waiting, self.ledger)
        interactions.check()
        labels.check()
        return interactions.counts, labels.counts

    def _check_state(self, letters: Letters, interactions: Counter[str], labels: Counter[str]) -> None:
        evidence, statuses = self.evidence, self.derivation.statuses
        counted = Counter(
            {
                "interactions": interactions["messages"],
                "labels": labels["messages"],
                "predictions": evidence.state.predictions,
                "labelled": statuses["labelled"],
                "expired": statuses["expired"],
                "duplicate_interactions": interactions["repeated"],
                "duplicate_labels": labels["repeated"],
                "asked": self.derivation.asked or 0,
                "unasked": self.derivation.unasked,
                **letters.faults,
            }
        )
        unknown: list[str] = []
        for stretch, cases in (
            (evidence.interactions, ("interactions", "duplicate_interactions")),
            (evidence.labels, ("labels", "duplicate_labels")),
            (evidence.predictions, ("duplicate_interactions", "asked")),
            (evidence.outcomes, ("labelled", "expired", "duplicate_labels", "unasked")),
            (evidence.dead_letters, (*FAULTS, *JOIN_FAULTS, "duplicate_interactions", "duplicate_labels")),
        ):
            unknown += [] if stretch.whole else cases
        check_state(
            evidence,
            self.ledger,
            marks=self.marks,
            pending=self.derivation.pending,
            counted=counted,
            unknown=unknown,
        )
