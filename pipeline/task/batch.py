"""A batch: the model runs all predictions and training examples of a plan at once."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, count, repeat
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from forks import probability
from pipeline.join.records import ChallengerScores
from pipeline.join.tables import Join
from pipeline.model.columns import InteractionColumns, ModelOutputs
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.model import Model
from pipeline.records.outputs import Example, Prediction, Share
from pipeline.records.slates import STRIDE
from pipeline.task.columns import CorrectedPrediction, LabelRequestColumns, OutcomeColumns, PredictionColumns
from pipeline.task.plan import Correction, DeadLetter, Plan, TrainingExamples
from pipeline.task.prior_predictions import PriorPredictions
from pipeline.task.sharing import Outbox

NO_PREDICTIONS: Final = PredictionColumns()
NO_OUTCOMES: Final = OutcomeColumns()
NO_REQUESTS: Final = LabelRequestColumns()

Value = TypeVar("Value")


@dataclass(frozen=True)
class Batch:
    """What became of the messages merged, and of the time that has passed, since the last batch."""

    predictions: PredictionColumns = NO_PREDICTIONS
    outcomes: OutcomeColumns = NO_OUTCOMES
    dead_letters: Sequence[DeadLetter] = ()
    steps: int = 0
    """Messages processed, and predictions and early labels whose time ran out."""
    shares: Sequence[Share] = ()
    """Shares for the other partitions."""
    requests: LabelRequestColumns = NO_REQUESTS
    spilled: Sequence[Prediction] = ()
    """Records of predictions that were spilled and now have an outcome."""

    @property
    def empty(self) -> bool:
        """Whether nothing happened."""
        return not (self.steps or self.shares)


def run_plan(
    plan: Plan,
    model: Model,
    join: Join,
    counters: Counter[str],
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
    outbox
        Collects what the other partitions are to learn; None where nothing is shared.
    policy
        Decides which labels are asked for; None where all are learned as they come.

    Returns
    -------
    Batch
        Columns of what happened.
    """
    split_points = plan.received.keys() | set(plan.policy_split_points() if policy else ())
    split_points |= plan.correction_split_points()
    predictions, outcomes = list[PredictionColumns](), list[OutcomeColumns]()
    first_request = counters["asked"]
    for piece in plan.split(sorted(split_points)):
        if not (piece.event_ids or piece.closed):
            continue
        if piece.late:
            piece.prior = PriorPredictions.of(piece.late)
        number = piece.folded - plan.folded
        shares = plan.received.get(number, []) if piece.closed else []
        correction = plan.corrections.get(number) if piece.closed else None
        model.merge_shared(shares)
        if policy is not None:
            piece.apply_policy(policy)
            counters["unasked"] += piece.count_unasked()
        ran = _run_piece(piece, model, correction)
        asked = None if policy is None else _ask_for_labels(ran, policy, counters)
        predictions.append(_prediction_columns(ran, asked, model))
        outcomes.append(_outcome_columns(ran, asked, shares, model, correction))
        _store_outputs(ran, asked, join)
        if outbox is not None:
            replaces = correction is not None and correction.former is not None and correction.replaces
            for example in _examples(ran, outbox.example_type):
                outbox.add(None if replaces else example)
    batch_predictions = PredictionColumns.concat(predictions) if predictions else NO_PREDICTIONS
    return Batch(
        batch_predictions,
        OutcomeColumns.concat(outcomes) if outcomes else NO_OUTCOMES,
        plan.dead_letters,
        plan.steps,
        () if outbox is None else outbox.drain(),
        _label_requests(first_request, batch_predictions),
        plan.prior.spilled,
    )


class _Run(NamedTuple):
    """A piece of a plan, and what the model predicted in it."""

    plan: Plan
    interactions: InteractionColumns
    """Those of prior predictions, then those of the plan's own."""
    examples: TrainingExamples
    prior: NDArray[np.float64]
    """Scores and features of prior predictions: see `PriorPredictions.scored`."""
    outputs: ModelOutputs
    """Of the plan's own predictions."""


def _run_piece(plan: Plan, model: Model, correction: Correction | None) -> _Run:
    """Run the model over a plan. Each interaction is predicted, or learned, or both.

    A correction is the first outcome of the plan, and no other follows.
    """
    interactions, examples = plan.interactions(model.features.entities), plan.training_examples()
    prior = plan.prior.scored(len(model.features))
    n, outcome_mask, rows = len(interactions.timestamps), plan.outcome_mask(), examples.rows
    labels = np.zeros(n)
    labels[rows] = examples.values
    weights = None
    if examples.weights is not None:
        weights = np.ones(n)
        weights[rows] = examples.weights
    order, included = np.empty(len(outcome_mask), dtype=np.int64), np.ones(len(outcome_mask), dtype=np.bool_)
    order[~outcome_mask], order[outcome_mask] = np.arange(len(prior), n), n + rows
    included[outcome_mask] = examples.learned
    if correction is not None and correction.replaces and correction.former is not None:
        features, value = prior[rows[0], 1:].tolist(), float(examples.values[0])
        model.replace_example(correction.prediction, features, correction.former, value)
        included[outcome_mask] = False
    values = np.frombuffer(plan.values).reshape(len(plan.event_ids), -1) if plan.values else None
    outputs = model.run(order[included], interactions, prior[:, 1:], labels, values, weights=weights)
    model.folded += len(rows)
    return _Run(plan, interactions, examples, prior, outputs)


def _ask_for_labels(ran: _Run, policy: LabelPolicy, counters: Counter[str]) -> list[bool]:
    """Decide for each prediction whether its label is asked for, and count the requests."""
    plan, outputs, asked = ran.plan, ran.outputs, list[bool]()
    for sequence, event_id, score, features in zip(
        count(plan.first), plan.event_ids, outputs.scores, outputs.features.tolist(), strict=False
    ):
        wanted = policy.asks(event_id, score, features, predicted=sequence, asked=counters["asked"])
        counters["asked"] += wanted
        asked.append(wanted)
    return asked


def _label_requests(first: int, predictions: PredictionColumns) -> LabelRequestColumns:
    if not predictions.asked:
        return NO_REQUESTS
    return LabelRequestColumns(first, list(compress(count(), predictions.asked)))


def _prediction_columns(ran: _Run, asked: list[bool] | None, model: Model) -> PredictionColumns:
    plan, outputs, begin = ran.plan, ran.outputs, len(ran.prior)
    first = plan.first // (STRIDE if model.features.item_entities else 1)
    return PredictionColumns(
        first,
        plan.event_ids,
        tuple(column[begin:] for column in ran.interactions.ids),
        plan.keys(model.features.key_entity, ran.interactions)[begin:],
        plan.timestamps,
        outputs.scores,
        outputs.probabilities,
        model.target.predictions(outputs.scores),
        outputs.features,
        plan.versions,
        outputs.challengers,
        asked,
        plan.tables,
        plan.carried,
        np.frombuffer(plan.numbers, dtype=np.int64) % STRIDE,
    )


def _outcome_columns(
    ran: _Run, asked: list[bool] | None, shares: list[Share], model: Model, correction: Correction | None
) -> OutcomeColumns:
    """Join predictions with their labels, and compute the losses of those that are learned.

    Parameters
    ----------
    ran
        A piece of a plan and its predictions.
    asked
        Whether the labels of these predictions are asked for; None without a policy.
    shares
        Shares of other partitions that were learned right before the first outcome.
    model
        Computes the losses.
    correction
        What the first outcome corrects; None if it does not.
    """
    plan, interactions, examples, prior, outputs = ran
    if not plan.closed:
        return OutcomeColumns(plan.folded)
    rows: list[int] = examples.rows.tolist()
    scores = np.concatenate([prior[:, 0], outputs.scores])[examples.rows]
    losses: list[float | None] = [*model.losses(scores, examples.values)]
    correct: list[bool | None] = [*model.target.correct_many(scores, examples.values)]
    for number in np.flatnonzero(~examples.learned).tolist():
        losses[number] = correct[number] = None
    scores_by_name = [None if each is None else each.by_name() for each in plan.prior.challengers]
    asked_column = [*plan.prior.asked]
    asked_column += repeat(None, len(outputs.scores)) if asked is None else asked
    sequences, positions = _sequences(plan, model)
    return OutcomeColumns(
        plan.folded,
        sequences,
        _select(plan.keys(model.features.key_entity, interactions), rows),
        _select(interactions.timestamps, rows),
        scores,
        plan.watch_ratios,
        plan.labels,
        plan.label_timestamps,
        correct,
        losses,
        {0: shares} if shares else {},
        {0: _correction_columns(correction, model)} if correction else {},
        _select_optional([*scores_by_name, *outputs.challengers], rows),
        _select_optional(asked_column, rows),
        plan.weights,
        _means(ran, model.mean_columns),
        positions,
    )


def _sequences(plan: Plan, model: Model) -> tuple[array[int], NDArray[np.int64]]:
    """Return the sequences of the predictions that get outcomes, and positions where they are of slates."""
    if not model.features.item_entities:
        return plan.closed, np.empty(0, dtype=np.int64)
    sequences, positions = np.divmod(np.frombuffer(plan.closed, dtype=np.int64), STRIDE)
    return array("q", sequences.tobytes()), positions


def _means(ran: _Run, columns: list[int]) -> NDArray[np.float64]:
    """Return the features in some columns of the outcomes' predictions, shape (n, columns)."""
    prior, rows = ran.prior, ran.examples.rows
    known = prior[:, [1 + column for column in columns]]
    if not len(ran.outputs.scores):
        return known[rows]
    means: NDArray[np.float64] = np.concatenate([known, ran.outputs.features[:, columns]])[rows]
    return means


def _correction_columns(correction: Correction, model: Model) -> CorrectedPrediction:
    """Return the prediction that is corrected, as it was written."""
    prediction = correction.prediction
    score, *features = np.frombuffer(prediction.scored).tolist()
    challengers = prediction.challengers
    return CorrectedPrediction(
        prediction.event_id,
        prediction.ids,
        prediction.timestamp,
        score,
        probability(score) if model.learner.settings.loss == "logistic" else None,
        model.target.prediction(score),
        features,
        prediction.model_version,
        prediction.sequence,
        None if challengers is None else challengers.by_name(),
        prediction.asked,
        correction.former,
        "replaced" if correction.replaces else "corrected",
    )


def _store_outputs(ran: _Run, asked: list[bool] | None, join: Join) -> None:
    """Keep what the model predicted for the predictions that wait for their label."""
    plan, outputs = ran.plan, ran.outputs
    if not plan.event_ids:
        return
    scored = np.column_stack([outputs.scores, outputs.features])
    own = plan.numbers or np.arange(plan.first, plan.first + len(plan.event_ids))
    join.store(
        np.asarray(own, dtype=np.int64),
        scored,
        None if asked is None else np.array(asked, dtype=np.int8),
        outputs.challengers,
    )
    names = tuple(outputs.challengers[0] or ())
    rows = plan.rows_of(np.array([*plan.waiting], dtype=np.int64)).tolist()
    for prediction, row in zip(plan.waiting.values(), rows, strict=True):
        prediction.scored = scored[row].tobytes()
        prediction.asked = None if asked is None else asked[row]
        if names:
            prediction.challengers = ChallengerScores.of(outputs.challengers[row] or {}, names)


def _examples(ran: _Run, make: Any) -> Iterator[Example | None]:
    """Yield the training example of each outcome; None where nothing is learned."""
    plan, interactions, examples, prior, outputs = ran
    features = np.concatenate([prior[:, 1:], outputs.features])
    weights: list[tuple[float, ...]] = [(each,) for each in plan.weights] or [()] * len(plan.labels)
    columns = zip(examples.rows.tolist(), plan.labels, plan.watch_ratios, weights, strict=True)
    for row, label, value, weight in columns:
        if label is None:
            yield None
            continue
        ids = [column[row] for column in interactions.ids]
        yield make(*ids, interactions.timestamps[row], features[row].tolist(), label, value or 0.0, *weight)


def _select(column: Sequence[Value], rows: list[int]) -> list[Value]:
    return [*map(column.__getitem__, rows)]


def _select_optional(column: list[Value | None], rows: list[int]) -> list[Value | None]:
    """Do as `_select`, at less cost where all is None."""
    return [None] * len(rows) if column.count(None) == len(column) else _select(column, rows)
