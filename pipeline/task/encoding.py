"""A batch's records as they go into the topics, written all at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain, compress, count, repeat
from typing import Final, NamedTuple, TypeVar

import msgspec
import numpy as np

from pipeline.model.columns import InteractionColumns, ModelOutputs
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.model import Model
from pipeline.records import decimals
from pipeline.records.encoding import encode, encode_all
from pipeline.records.fields import Id
from pipeline.records.outcome_encoder import (
    PLAIN_SUFFIX,
    LabelFields,
    encode_label_fields,
    outcome_suffix,
    plain_prefix_ends,
    prefix_end,
)
from pipeline.records.outputs import LabelRequest, Prediction, Share
from pipeline.task.plan import Plan, TrainingExamples


class EncodedRecords(NamedTuple):
    """Records of a partition as they go into a topic, in the order of their sequences."""

    first: int
    """The sequence of the first."""
    values: list[bytes]
    users: list[Id]
    """Whose they are."""
    timestamps: list[int]
    """Event times, in milliseconds."""

    def concat(self, later: EncodedRecords) -> EncodedRecords:
        """These and the next ones."""
        if not (self.values and later.values):
            return self if self.values else later
        return EncodedRecords(
            self.first,
            self.values + later.values,
            self.users + later.users,
            self.timestamps + later.timestamps,
        )


Value = TypeVar("Value")
NO_RECORDS: Final = EncodedRecords(0, [], [], [])


class PredictionColumns(NamedTuple):
    """What was said of plays, column by column."""

    plays: InteractionColumns
    scores: list[float]
    prefix_texts: list[bytes]
    """What their outcomes begin with, up to the places in the next column: see
    `pipeline.records.outcome_encoder.outcome_prefix`."""
    prefix_ends: list[int | None]
    suffixes: list[bytes]
    """What their outcomes end with: see `pipeline.records.outcome_encoder.outcome_suffix`."""


def request_labels(
    plan: Plan, outputs: ModelOutputs, policy: LabelPolicy, counters: Counter[str]
) -> tuple[list[bool], EncodedRecords]:
    """Decide of which predictions the label is asked for, and write that down."""
    first, asked, values = counters["asked"], list[bool](), []
    columns = (plan.event_ids, plan.users, plan.videos, plan.timestamps, outputs.scores)
    for sequence, features, play in zip(
        count(plan.first), outputs.features.tolist(), zip(*columns, strict=True), strict=False
    ):
        event_id, *_, score = play
        wanted = policy.asks(event_id, score, features, predicted=sequence, asked=counters["asked"])
        asked.append(wanted)
        if wanted:
            values.append(encode(LabelRequest(*play, sequence, counters["asked"])))
            counters["asked"] += 1
    users, timestamps = list(compress(plan.users, asked)), list(compress(plan.timestamps, asked))
    return asked, EncodedRecords(first, values, users, timestamps)


def predicted(plan: Plan, outputs: ModelOutputs, asked: list[bool] | None) -> EncodedRecords:
    """Predictions, and what was said of them."""
    if not plan.event_ids:
        return NO_RECORDS
    values = encode_all(
        map(
            Prediction,
            plan.event_ids,
            plan.users,
            plan.videos,
            plan.timestamps,
            outputs.scores,
            outputs.probabilities,
            [score > 0.0 for score in outputs.scores],
            map(msgspec.Raw, decimals.encode_rows(outputs.features)),
            plan.versions,
            count(plan.first),
            outputs.challengers,
            repeat(None) if asked is None else asked,
        )
    )
    return EncodedRecords(plan.first, values, plan.users, plan.timestamps)


def prediction_columns(
    plan: Plan,
    plays: InteractionColumns,
    outputs: ModelOutputs,
    written: EncodedRecords,
    asked: list[bool] | None,
) -> PredictionColumns:
    """What was said of a plan's plays, before and now."""
    prior_predictions, values = plan.prior_predictions, written.values
    if asked is None and not any(outputs.challengers[:1]):
        prefix_ends, suffixes = plain_prefix_ends(plan.first, len(values)), [PLAIN_SUFFIX] * len(values)
    else:
        prefix_ends, suffixes = list(map(prefix_end, values)), list(map(outcome_suffix, values))
    return PredictionColumns(
        plays,
        [each.score for each in prior_predictions] + outputs.scores,
        [each.outcome_prefix for each in prior_predictions] + values,
        [None] * len(prior_predictions) + prefix_ends,
        [each.outcome_suffix for each in prior_predictions] + suffixes,
    )


def closed(
    plan: Plan,
    training_examples: TrainingExamples,
    prediction_columns: PredictionColumns,
    shared: list[Share] | None,
    model: Model,
) -> EncodedRecords:
    """Predictions joined with their labels, and the losses of those that were learned.

    Parameters
    ----------
    plan
        Its closings.
    lessons
        What these teach.
    said
        Of the plays.
    shared
        What was taken over right before the first closing.
    model
        Whose losses they are.
    """
    if not plan.closed:
        return NO_RECORDS
    rows: list[int] = training_examples.rows.tolist()
    scores = np.array(_select(prediction_columns.scores, rows))
    losses: list[float | None] = [*model.losses(scores, training_examples.labels, training_examples.ratios)]
    correct: list[bool | None] = ((scores > 0.0) == training_examples.labels).tolist()
    for number in np.flatnonzero(~training_examples.learned).tolist():
        losses[number] = correct[number] = None
    label_fields = encode_label_fields(
        map(
            LabelFields,
            plan.closed,
            plan.watch_ratios,
            plan.watched,
            plan.label_timestamps,
            correct,
            losses,
            ["expired" if moment is None else "labelled" for moment in plan.label_timestamps],
            count(plan.folded),
            chain([shared], repeat(None)),
        )
    )
    prefix_texts, prefix_ends = (
        _select(prediction_columns.prefix_texts, rows),
        _select(prediction_columns.prefix_ends, rows),
    )
    values = [
        text[:end] + ending for text, end, ending in zip(prefix_texts, prefix_ends, label_fields, strict=True)
    ]
    if prediction_columns.suffixes.count(PLAIN_SUFFIX) < len(prediction_columns.suffixes):
        values = [
            value[:-1] + prediction_columns.suffixes[row] for value, row in zip(values, rows, strict=True)
        ]
    return EncodedRecords(
        plan.folded,
        values,
        _select(prediction_columns.plays.users, rows),
        _select(prediction_columns.plays.timestamps, rows),
    )


def _select(column: Sequence[Value], rows: list[int]) -> list[Value]:
    return [column[row] for row in rows]
