"""A batch: the model runs all predictions and training examples of a plan at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pipeline.join.prediction_columns import UNDECIDED, PredictionColumns, no_predictions
from pipeline.join.tables import Join
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.model import Model
from pipeline.records.outputs import Example, Prediction, Share
from pipeline.records.places import flagged
from pipeline.task.columns import Integers, OutcomeColumns
from pipeline.task.plan import DeadLetter, Plan
from pipeline.task.plan_run import PlanRun
from pipeline.task.sharing import Outbox


@dataclass(frozen=True)
class Batch:
    """What became of the messages merged, and of the time that has passed, since the last batch."""

    predictions: PredictionColumns = field(default_factory=no_predictions)
    outcomes: OutcomeColumns = field(default_factory=OutcomeColumns)
    dead_letters: Sequence[DeadLetter] = ()
    steps: int = 0
    """Messages processed, and predictions and early labels whose time ran out."""
    shares: Sequence[Share] = ()
    """Shares for the other partitions."""
    first_request: int = 0
    """Sequence of the first label request."""
    spilled: Sequence[Prediction] = ()
    """Records of predictions that were spilled and now have an outcome."""
    corrections: bool = False
    """Whether labels of these outcomes may be corrected."""

    @property
    def empty(self) -> bool:
        """Whether nothing happened."""
        return not (self.steps or self.shares)

    @property
    def requested(self) -> Integers:
        """The rows of the predictions whose label is asked for."""
        return flagged(self.predictions.asked == 1)


def run_plan(
    plan: Plan,
    model: Model,
    join: Join,
    counters: Counter[str],
    missing_label: bool | float | None,
    *,
    outbox: Outbox | None = None,
    policy: LabelPolicy | None = None,
) -> Batch:
    """Make the predictions of a plan and learn its outcomes, in the order planned.

    Parameters
    ----------
    plan
        Predictions and outcomes of the batch.
    model
        Predicts and learns.
    join
        Keeps what the model predicts for the predictions that wait.
    counters
        Counters of the partition. Under a policy, labels that are asked for and labels that came unasked are
        counted.
    missing_label
        What a prediction that expires teaches; None for nothing.
    outbox
        Collects what the other partitions are to learn; None where nothing is shared.
    policy
        Decides which labels are asked for; None where all are learned as they come.

    Returns
    -------
    Batch
        Columns of what happened.
    """
    if not (plan.predictions or plan.outcomes):
        return Batch(
            dead_letters=plan.dead_letters,
            steps=plan.steps,
            shares=() if outbox is None else outbox.drain(),
        )
    first_request = counters["asked"]
    run = PlanRun(plan, model, policy, counters, missing_label, replaces=join.replaces)
    run.finish()
    predictions, outcomes = _finish_predictions(run, model), _finish_outcomes(run, model, missing_label)
    if len(predictions):
        join.store(predictions, plan.outcomes_learned)
    if join.answered is not None:
        join.answered.note_learned(plan.outcomes_learned, np.where(run.learned, run.taught, np.nan))
    if outbox is not None:
        for example in _examples(run, outbox.example_type):
            outbox.add(example)
    return Batch(
        predictions,
        outcomes,
        plan.dead_letters,
        plan.steps,
        () if outbox is None else outbox.drain(),
        first_request,
        run.predictions.spilled,
        join.answered is not None,
    )


def _finish_predictions(run: PlanRun, model: Model) -> PredictionColumns:
    """Return the own predictions."""
    own = run.predictions.own(run.known)
    own.probabilities = run.probabilities
    own.predicted = model.target.predictions(own.scores.tolist())
    return own


def _finish_outcomes(run: PlanRun, model: Model, missing_label: bool | float | None) -> OutcomeColumns:
    """Join predictions with their labels, and compute the losses of those that are learned."""
    found, every, rows = run.outcomes, run.predictions, run.rows
    if not len(found):
        return found
    key = model.features.key_entity
    found.shared, found.replaces = run.plan.received, run.replaces
    found.corrections = replace(run.plan.corrections, formers=run.formers)
    found.keys = every.ids.column(0 if key is None else 1 + key).select(rows)
    found.timestamps, found.scores = every.timestamps[rows], every.scores[rows]
    found.losses = [*model.losses(found.scores, run.taught)]
    found.correct = [*model.target.correct_many(found.scores, run.taught)]
    found.labels = [*model.target.labels(found.values.tolist())]
    for number in flagged(found.expired).tolist():
        found.labels[number] = missing_label
    for number in flagged(~run.learned).tolist():
        found.losses[number] = found.correct[number] = found.labels[number] = None
    if every.challengers:
        found.challengers = [*map(every.challengers.__getitem__, rows.tolist())]
    asked = every.asked[rows]
    found.asked = asked if (asked != UNDECIDED).any() else None
    found.means = every.features[rows][:, model.mean_columns]
    return found


def _examples(run: PlanRun, make: Any) -> Iterator[Example | None]:
    """Yield the training example of each outcome; None where nothing is learned, or a label is replaced."""
    found, every = run.outcomes, run.predictions
    weights: list[tuple[float, ...]] = [()] * len(found)
    if found.weights is not None:
        weights = [(each,) for each in found.weights.tolist()]
    taught, replacing = run.taught.tolist(), set[int]()
    if run.replaces:
        replacing.update(run.plan.corrections.rows[~np.isnan(run.formers)].tolist())
    for number, row in enumerate(run.rows.tolist()):
        if not run.learned[number] or number in replacing:
            yield None
            continue
        ids = [column[row] for column in run.interactions.ids]
        features, moment = every.features[row].tolist(), int(every.timestamps[row])
        yield make(*ids, moment, features, found.labels[number], taught[number], *weights[number])
