"""A batch's records as they go into the topics, written all at once."""

from __future__ import annotations

import struct
from collections import Counter
from typing import Final, NamedTuple

import msgspec
import numpy as np

from pipeline import decimals
from pipeline.endings import Ending, conclusion, encode_endings, opening, plain_opening
from pipeline.join import Pending
from pipeline.model import Judgements, Model
from pipeline.plan import Closing
from pipeline.policy import Policy
from pipeline.records import Id, LabelRequest, Prediction, encode, encode_all


class Lines(NamedTuple):
    """Records of a partition as they go into a topic, in the order of their sequences."""

    first: int
    """The sequence of the first."""
    values: list[bytes]
    users: list[Id]
    """Whose they are."""
    timestamps: list[int]
    """Event times, in milliseconds."""

    def then(self, later: Lines) -> Lines:
        """These and the next ones."""
        if not (self.values and later.values):
            return self if self.values else later
        return Lines(
            self.first,
            self.values + later.values,
            self.users + later.users,
            self.timestamps + later.timestamps,
        )


NOTHING: Final = Lines(0, [], [], [])


def requested(
    predictions: list[Pending], judged: Judgements, policy: Policy, counters: Counter[str]
) -> Lines:
    """Decide of which predictions the label is asked for, and write that down."""
    first, values, chosen = counters["asked"], [], []
    for prediction, features, score in zip(predictions, judged.features.tolist(), judged.scores, strict=True):
        prediction.asked = policy.asks(
            prediction.event_id, score, features, predicted=prediction.sequence, asked=counters["asked"]
        )
        if prediction.asked:
            values.append(
                encode(
                    LabelRequest(
                        prediction.event_id,
                        prediction.user_id,
                        prediction.video_id,
                        prediction.timestamp,
                        score,
                        prediction.sequence,
                        counters["asked"],
                    )
                )
            )
            chosen.append(prediction)
            counters["asked"] += 1
    return Lines(first, values, [each.user_id for each in chosen], [each.timestamp for each in chosen])


def predicted(predictions: list[Pending], judged: Judgements) -> Lines:
    """Note what was said of each, and write it down."""
    if not predictions:
        return NOTHING
    users, timestamps = [each.user_id for each in predictions], [each.timestamp for each in predictions]
    asked = [each.asked for each in predictions]
    values = encode_all(
        map(
            Prediction,
            [each.event_id for each in predictions],
            users,
            [each.video_id for each in predictions],
            timestamps,
            judged.scores,
            judged.probabilities,
            [score > 0.0 for score in judged.scores],
            map(msgspec.Raw, decimals.encode_rows(judged.features)),
            [each.model_version for each in predictions],
            [each.sequence for each in predictions],
            judged.challengers,
            asked,
        )
    )
    raw = struct.iter_unpack(f"{judged.features[0].nbytes}s", judged.features.tobytes())
    ends_with_number = judged.challengers[0] is None and asked[0] is None
    openings = map(plain_opening if ends_with_number else opening, values)
    for prediction, score, (features,), begin in zip(predictions, judged.scores, raw, openings, strict=True):
        prediction.score = score
        prediction.features = features
        prediction.opening = begin
    if not ends_with_number:
        for prediction, value in zip(predictions, values, strict=True):
            prediction.conclusion = conclusion(value)
    return Lines(predictions[0].sequence, values, users, timestamps)


def closed(closings: list[Closing], model: Model) -> Lines:
    """Predictions joined with their labels, and the losses of those that were learned."""
    if not closings:
        return NOTHING
    predictions = [closing.prediction for closing in closings]
    learned = [closing.watched for closing in closings]
    ratios = [closing.watch_ratio for closing in closings]
    known_at = [closing.label_timestamp for closing in closings]
    scores = [prediction.score for prediction in predictions]
    losses = model.losses(
        np.array(scores), np.array(learned, dtype=np.bool_), np.array([ratio or 0.0 for ratio in ratios])
    )
    endings = encode_endings(
        map(
            Ending,
            [prediction.sequence for prediction in predictions],
            ratios,
            learned,
            known_at,
            [
                None if label is None else label == (score > 0.0)
                for label, score in zip(learned, scores, strict=True)
            ],
            [None if label is None else loss for label, loss in zip(learned, losses, strict=True)],
            ["expired" if moment is None else "labelled" for moment in known_at],
            [closing.sequence for closing in closings],
            [closing.shared for closing in closings],
        )
    )
    return Lines(
        closings[0].sequence,
        [
            prediction.opening + ending + prediction.conclusion
            for prediction, ending in zip(predictions, endings, strict=True)
        ],
        [prediction.user_id for prediction in predictions],
        [prediction.timestamp for prediction in predictions],
    )
