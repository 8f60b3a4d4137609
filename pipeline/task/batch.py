"""A batch: what the model makes, all at once, of what its messages come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.features.statistics import FEATURES
from pipeline.model.columns import InteractionColumns, ModelOutputs
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.model import Model
from pipeline.records.outputs import Example, Share
from pipeline.task import encoding as lines
from pipeline.task.encoding import NO_RECORDS, EncodedRecords, PredictionColumns
from pipeline.task.plan import DeadLetter, Plan, TrainingExamples
from pipeline.task.sharing import Outbox


@dataclass(frozen=True)
class Batch:
    """What came of the messages merged, and of the time that has passed, since the last batch."""

    predictions: EncodedRecords = NO_RECORDS
    outcomes: EncodedRecords = NO_RECORDS
    dead_letters: Sequence[DeadLetter] = ()
    steps: int = 0
    """Messages processed, and predictions and early labels whose time ran out."""
    shares: Sequence[Share] = ()
    """What the other partitions are told."""
    requests: EncodedRecords = NO_RECORDS
    """Predictions whose label is asked for."""

    @property
    def empty(self) -> bool:
        """Whether nothing happened."""
        return not (self.steps or self.shares)


def run_plan(
    plan: Plan,
    model: Model,
    counters: Counter[str],
    *,
    taken: Sequence[list[Share]] = (),
    outbox: Outbox | None = None,
    policy: LabelPolicy | None = None,
) -> Batch:
    """Have everything judged and learned, in the order planned.

    Parameters
    ----------
    plan
        What is to be done.
    model
        What does it.
    counters
        Those of the partition. Under a policy, labels asked for and labels that came unasked are counted.
    taken
        What is folded right before each of the first closings, and goes into their outcomes.
    publication
        Who else is to be told.
    policy
        Decides which labels are asked for; None where all are learned as they come.
    """
    cuts = set(range(len(taken))) | set(plan.policy_split_points() if policy else ())
    predictions = outcomes = requests = NO_RECORDS
    for piece in plan.split(sorted(cuts)):
        if not (piece.event_ids or piece.closed):
            continue
        number = piece.folded - plan.folded
        shared = taken[number] if piece.closed and number < len(taken) else None
        model.merge_shared(shared or ())
        asked: list[bool] | None = None
        if policy is not None:
            piece.apply_policy(policy)
            counters["unasked"] += piece.count_unasked()
        plays, training_examples = piece.plays(), piece.training_examples()
        outputs = _run_model(piece, plays, training_examples, model)
        if policy is not None:
            asked, wanted = lines.request_labels(piece, outputs, policy, counters)
            requests = requests.concat(wanted)
        written = lines.predicted(piece, outputs, asked)
        predictions = predictions.concat(written)
        prediction_columns = lines.prediction_columns(piece, plays, outputs, written, asked)
        _store_outputs(piece, outputs, prediction_columns, asked)
        outcomes = outcomes.concat(lines.closed(piece, training_examples, prediction_columns, shared, model))
        if outbox is not None:
            for example in _examples(piece, plays, training_examples, outputs):
                outbox.add(example)
    told: Sequence[Share] = () if outbox is None else outbox.drain()
    return Batch(predictions, outcomes, plan.dead_letters, plan.steps, told, requests)


def _run_model(
    plan: Plan, plays: InteractionColumns, training_examples: TrainingExamples, model: Model
) -> ModelOutputs:
    """Judge, and teach the model. Plays are judged, or learned, or both."""
    n, outcome_mask, rows = len(plays.users), plan.outcome_mask(), training_examples.rows
    labels, ratios = np.zeros(n, dtype=np.bool_), np.zeros(n)
    labels[rows], ratios[rows] = training_examples.labels, training_examples.ratios
    order, taken = np.empty(len(outcome_mask), dtype=np.int64), np.ones(len(outcome_mask), dtype=np.bool_)
    order[~outcome_mask], order[outcome_mask] = np.arange(len(plan.prior_predictions), n), n + rows
    taken[outcome_mask] = training_examples.learned
    outputs = model.run(order[taken], plays, plan.prior_features(), labels, ratios)
    model.folded += len(rows)
    return outputs


def _store_outputs(
    plan: Plan, outputs: ModelOutputs, prediction_columns: PredictionColumns, asked: list[bool] | None
) -> None:
    """Let those that wait know what the model says of them."""
    first, begin, prefix_texts, prefix_ends = (
        plan.first,
        len(plan.prior_predictions),
        prediction_columns.prefix_texts,
        prediction_columns.prefix_ends,
    )
    features, size = outputs.features.tobytes(), outputs.features.itemsize * len(FEATURES)
    for prediction in plan.waiting:
        row = prediction.sequence - first
        prediction.score = outputs.scores[row]
        prediction.features = features[row * size : (row + 1) * size]
        prediction.outcome_prefix = prefix_texts[begin + row][: prefix_ends[begin + row]]
        prediction.outcome_suffix = prediction_columns.suffixes[begin + row]
        prediction.asked = None if asked is None else asked[row]


def _examples(
    plan: Plan, plays: InteractionColumns, training_examples: TrainingExamples, outputs: ModelOutputs
) -> Iterator[Example | None]:
    """What each closing teaches, if anything."""
    features = np.concatenate([plan.prior_features(), outputs.features])
    for place, watched, ratio in zip(
        training_examples.rows.tolist(), plan.watched, plan.watch_ratios, strict=True
    ):
        play = (plays.users[place], plays.videos[place], plays.timestamps[place], features[place].tolist())
        yield None if watched is None else Example(*play, watched, ratio or 0.0)
