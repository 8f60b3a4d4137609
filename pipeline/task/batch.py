"""A batch: the model runs all predictions and training examples of a plan at once."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, count, repeat
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.join.prediction_rows import UNDECIDED, ModelColumns
from pipeline.join.records import ChallengerScores
from pipeline.join.tables import Join
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.model import Model
from pipeline.records.outputs import Example, Prediction, Share
from pipeline.records.slates import STRIDE
from pipeline.task.columns import CorrectedOutcome, LabelRequestColumns, OutcomeColumns, PredictionColumns
from pipeline.task.plan import DeadLetter, Plan
from pipeline.task.plan_run import PlanRun
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
    corrections: bool = False
    """Whether labels of these outcomes may be corrected."""

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
    if not (plan.event_ids or plan.closed):
        return Batch(
            dead_letters=plan.dead_letters,
            steps=plan.steps,
            shares=() if outbox is None else outbox.drain(),
        )
    first_request = counters["asked"]
    run = PlanRun(plan, model, policy, counters, replaces=join.replaces)
    run.finish()
    predictions = _prediction_columns(run, model)
    outcomes = _outcome_columns(run, model)
    _store_outputs(run, join)
    if outbox is not None:
        for example in _examples(run, outbox.example_type):
            outbox.add(example)
    return Batch(
        predictions,
        outcomes,
        plan.dead_letters,
        plan.steps,
        () if outbox is None else outbox.drain(),
        _label_requests(first_request, predictions),
        plan.prior.spilled,
        join.answered is not None,
    )


def _label_requests(first: int, predictions: PredictionColumns) -> LabelRequestColumns:
    if not predictions.asked:
        return NO_REQUESTS
    return LabelRequestColumns(first, list(compress(count(), predictions.asked)))


def _prediction_columns(run: PlanRun, model: Model) -> PredictionColumns:
    plan, begin = run.plan, run.known
    first = plan.first // (STRIDE if model.features.item_entities else 1)
    scores = run.scores[begin:].tolist()
    return PredictionColumns(
        first,
        plan.event_ids,
        tuple(column[begin:] for column in run.interactions.ids),
        plan.keys(model.features.key_entity, run.interactions)[begin:],
        plan.timestamps,
        scores,
        run.probabilities,
        model.target.predictions(scores),
        run.features[begin:],
        plan.versions,
        run.challengers,
        run.asked,
        plan.tables,
        plan.carried,
        np.frombuffer(plan.numbers, dtype=np.int64) % STRIDE,
    )


def _outcome_columns(run: PlanRun, model: Model) -> OutcomeColumns:
    """Join predictions with their labels, and compute the losses of those that are learned."""
    plan, interactions, examples = run.plan, run.interactions, run.examples
    if not plan.closed:
        return OutcomeColumns(plan.folded)
    rows: list[int] = examples.rows.tolist()
    scores = run.scores[examples.rows]
    losses: list[float | None] = [*model.losses(scores, examples.values)]
    correct: list[bool | None] = [*model.target.correct_many(scores, examples.values)]
    labels = plan.labels
    if not run.learned.all():
        unlearned = np.flatnonzero(~run.learned).tolist()
        labels = [*labels]
        for number in unlearned:
            losses[number] = correct[number] = labels[number] = None
    scores_by_name = [None if each is None else each.by_name() for each in plan.prior.challengers]
    asked_column = [*plan.prior.asked]
    asked_column += repeat(None, len(run.scores) - run.known) if run.asked is None else run.asked
    sequences, positions = _sequences(plan, model)
    return OutcomeColumns(
        plan.folded,
        sequences,
        _select(plan.keys(model.features.key_entity, interactions), rows),
        _select(interactions.timestamps, rows),
        scores,
        plan.watch_ratios,
        labels,
        plan.label_timestamps,
        correct,
        losses,
        plan.received,
        {
            number: CorrectedOutcome(
                each.outcome,
                run.formers[number],
                each.weight,
                "replaced" if run.replaces else "corrected",
            )
            for number, each in plan.corrections.items()
        },
        _select_optional([*scores_by_name, *run.challengers], rows),
        _select_optional(asked_column, rows),
        plan.weights,
        run.features[examples.rows][:, model.mean_columns],
        positions,
    )


def _sequences(plan: Plan, model: Model) -> tuple[array[int], NDArray[np.int64]]:
    """Return the sequences of the predictions that get outcomes, and positions where they are of slates."""
    if not model.features.item_entities:
        return plan.closed, np.empty(0, dtype=np.int64)
    sequences, positions = np.divmod(np.frombuffer(plan.closed, dtype=np.int64), STRIDE)
    return array("q", sequences.tobytes()), positions


def _store_outputs(run: PlanRun, join: Join) -> None:
    """Keep what the model predicted for predictions that wait or may be corrected, and what was learned."""
    plan, known = run.plan, run.known
    if plan.event_ids:
        challengers: Sequence[ChallengerScores | None] = [None] * len(plan.event_ids)
        if run.challengers[0]:
            names = tuple(run.challengers[0])
            challengers = [ChallengerScores.of(each or {}, names) for each in run.challengers]
        asked = np.full(len(plan.event_ids), UNDECIDED) if run.asked is None else np.array(run.asked)
        scored = np.column_stack([run.scores[known:], run.features[known:]])
        outputs = ModelColumns(scored, asked.astype(np.int8), challengers)
        own = plan.numbers or np.arange(plan.first, plan.first + len(plan.event_ids))
        join.store(np.asarray(own, dtype=np.int64), outputs, plan.folded)
    if join.answered is not None:
        join.answered.note_learned(plan.folded, np.where(run.learned, run.examples.values, np.nan))


def _examples(run: PlanRun, make: Any) -> Iterator[Example | None]:
    """Yield the training example of each outcome; None where nothing is learned, or a label is replaced."""
    plan, interactions = run.plan, run.interactions
    weights: list[tuple[float, ...]] = [(each,) for each in plan.weights] or [()] * len(plan.labels)
    columns = zip(run.examples.rows.tolist(), plan.labels, plan.watch_ratios, weights, strict=True)
    for number, (row, label, value, weight) in enumerate(columns):
        if not run.learned[number] or (run.replaces and run.formers.get(number) is not None):
            yield None
            continue
        ids = [column[row] for column in interactions.ids]
        features = run.features[row].tolist()
        yield make(*ids, interactions.timestamps[row], features, label, value or 0.0, *weight)


def _select(column: Sequence[Value], rows: list[int]) -> list[Value]:
    return [*map(column.__getitem__, rows)]


def _select_optional(column: list[Value | None], rows: list[int]) -> list[Value | None]:
    """Do as `_select`, at less cost where all is None."""
    return [None] * len(rows) if column.count(None) == len(column) else _select(column, rows)
