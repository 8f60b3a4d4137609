"""What a batch's messages come to before the model is asked: whom to judge, what to learn, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.join import Pending
from pipeline.policy import Policy
from pipeline.records import Example, Share, Source


class DeadLetter(NamedTuple):
    """A message that could not be used, and why."""

    source: Source
    fault: str
    reason: str


class Closing(msgspec.Struct, gc=False):
    """The end of a prediction's wait."""

    prediction: Pending
    watched: bool | None
    """What is learned; None for nothing. A policy has its say once the prediction is judged."""
    watch_ratio: float | None
    """The label's, if one came in time."""
    label_timestamp: int | None
    """Its time."""
    sequence: int
    """The outcome's."""
    shared: list[Share] | None = None
    """What was taken over from other partitions right before, if anything."""

    @property
    def example(self) -> Example | None:
        """What it teaches, if anything, once the prediction is judged."""
        if self.watched is None:
            return None
        prediction = self.prediction
        features = np.frombuffer(prediction.features).tolist()
        play = (prediction.user_id, prediction.video_id, prediction.timestamp, features)
        return Example(*play, self.watched, self.watch_ratio or 0.0)


@dataclass
class Plan:
    """What messages, and the time that has passed, come to before the model was asked."""

    predictions: list[Pending] = field(default_factory=list)
    """To be judged."""
    closings: list[Closing] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    """Steps: i judges prediction i, ~i learns from closing i."""
    dead_letters: list[DeadLetter] = field(default_factory=list)
    steps: int = 0
    """Messages processed, and predictions and early labels whose time ran out."""

    def predict(self, prediction: Pending) -> None:
        """Judge this next."""
        self.order.append(len(self.predictions))
        self.predictions.append(prediction)

    def close(self, closing: Closing) -> None:
        """Learn from this next."""
        if closing.watched is not None:
            self.order.append(~len(self.closings))
        self.closings.append(closing)

    def extend(
        self, predictions: list[Pending], closings: list[Closing], order: NDArray[np.int64], steps: int
    ) -> None:
        """Judge and learn these next, whose order counts from 0."""
        first, last = len(self.predictions), len(self.closings)
        self.order += np.where(order >= 0, order + first, order - last).tolist()
        self.predictions += predictions
        self.closings += closings
        self.steps += steps

    def cut(self, numbers: Sequence[int]) -> list[Plan]:
        """What comes before the closings of these numbers, ascending, and after the last: one piece more.

        A closing is the first of a piece, with what comes after it.
        """
        if not numbers:
            return [self]
        shown = [*self._shown_before(numbers).tolist(), len(self.predictions)]
        learned = np.cumsum([0, *(closing.watched is not None for closing in self.closings)])
        order = np.array(self.order, dtype=np.int64)
        pieces, first_shown, first = [], 0, 0
        for last_shown, last in zip(shown, [*numbers, len(self.closings)], strict=True):
            steps = order[first_shown + learned[first] : last_shown + learned[last]]
            steps = np.where(steps >= 0, steps - first_shown, steps + first)
            pieces.append(
                Plan(self.predictions[first_shown:last_shown], self.closings[first:last], steps.tolist())
            )
            first_shown, first = last_shown, last
        return pieces

    def undecided(self) -> list[int]:
        """The closings before which to cut, so that each piece closes what was judged in an earlier one."""
        if not (self.predictions and self.closings):
            return []
        begin = self.predictions[0].sequence
        shown, judged, numbers = self._shown_before(range(len(self.closings))).tolist(), 0, []
        for number, closing in enumerate(self.closings):
            if closing.prediction.sequence - begin >= judged:
                judged = shown[number]
                numbers.append(number)
        return numbers

    def _shown_before(self, numbers: Sequence[int]) -> NDArray[np.int64]:
        """How many predictions come before each of these closings."""
        versions = [prediction.model_version for prediction in self.predictions]
        sequences = [self.closings[number].sequence for number in numbers]
        return np.searchsorted(versions, sequences, side="right")

    def withhold(self, policy: Policy) -> None:
        """Teach nothing where the policy says so; all predictions closed here have to be judged."""
        for closing in self.closings:
            if not policy.teaches(closing.prediction.asked, closing.label_timestamp is not None):
                closing.watched = None
        self.order = [step for step in self.order if step >= 0 or self.closings[~step].watched is not None]
