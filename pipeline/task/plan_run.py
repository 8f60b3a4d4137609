"""The model runs a plan: all at once, or in segments where something else has to happen in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.model.columns import FormerLabels, InteractionColumns
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.model import Model
from pipeline.records.fields import Id
from pipeline.task.plan import Plan
from pipeline.task.state import ITEMS

Integers: TypeAlias = NDArray[np.int64]


class PlanRun:
    """What the model predicts of a plan.

    A segment begins before an outcome if shares of other partitions are learned right before it, or if
    something has to be known of its prediction that is made in the segment before.

    Parameters
    ----------
    plan
        Predictions and outcomes.
    model
        Predicts and learns.
    policy
        Decides which labels are asked for; None where all are learned as they come.
    counters
        Labels that are asked for, and labels that came unasked, are counted. Items of slates are counted
        already.
    replaces
        Whether a corrected label is learned in place of the former one.

    Attributes
    ----------
    known
        The number of predictions that were made before. They come first in what follows.
    interactions
        The interactions of all predictions.
    scores, features
        Scores, shape (n,), and features, shape (n, features), of all predictions.
    probabilities, challengers
        Those of the plan's own predictions.
    asked
        Whether the labels of these are asked for; None without a policy.
    examples
        The training examples of the outcomes.
    learned
        Whether each is learned, shape (outcomes,).
    formers
        What the corrected outcomes of these numbers had taught before; None for nothing.
    """

    def __init__(
        self,
        plan: Plan,
        model: Model,
        policy: LabelPolicy | None,
        counters: Counter[str],
        *,
        replaces: bool,
    ) -> None:
        self.plan, self._model, self._policy, self._counters = plan, model, policy, counters
        self.replaces = replaces
        self.known = len(plan.prior)
        self.interactions = plan.interactions(model.features.entities)
        self.examples = plan.training_examples()
        self.learned = self.examples.learned.copy()
        prior = plan.prior.scored(len(model.features))
        self.scores = np.concatenate([prior[:, 0], np.empty(len(plan.event_ids))])
        self.features = np.concatenate([prior[:, 1:], np.empty((len(plan.event_ids), len(model.features)))])
        self.probabilities: list[float | None] = []
        self.challengers: list[dict[str, float] | None] = []
        self.asked: list[bool] | None = None if policy is None else []
        self.formers: dict[int, float | None] = {}
        self._outcome_mask = plan.outcome_mask()
        self._values = np.frombuffer(plan.values).reshape(len(plan.event_ids), -1) if plan.values else None

    def finish(self) -> None:
        """Run all of it."""
        policy, everything = self._policy, slice(0, len(self.plan.event_ids))
        at_once = policy is not None and not policy.needs_scores
        if policy is not None and at_once:
            self._ask(policy, everything)
        for outcomes, predictions in self._segments():
            if policy is not None:
                self._apply_policy(policy, outcomes)
            if outcomes.start < outcomes.stop:
                self._model.merge_shared(self.plan.received.get(outcomes.start, []))
            self._run(outcomes, predictions)
            if policy is not None and not at_once:
                self._ask(policy, predictions)
        self.formers = {number: self._former(number) for number in self.plan.corrections}

    def _segments(self) -> Iterator[tuple[slice, slice]]:
        """Yield the outcomes and the predictions of each segment."""
        plan, total = self.plan, len(self.plan.closed)
        begins = sorted(self._needed_begins())
        before = plan.predictions_before(begins).tolist()
        outcomes, predictions = [0, *begins, total], [0, *before, len(plan.event_ids)]
        for number in range(len(begins) + 1):
            yield (
                slice(outcomes[number], outcomes[number + 1]),
                slice(predictions[number], predictions[number + 1]),
            )

    def _needed_begins(self) -> set[int]:
        """Return the outcomes before which a segment has to begin."""
        plan = self.plan
        forced = {*plan.received}
        after = self._policy is not None and self._policy.needs_scores
        own = self.examples.rows - self.known
        if not after and not plan.corrections:
            return forced
        dependent = np.flatnonzero(own >= 0).tolist() if after else sorted(plan.corrections)
        begins, predicted = set[int](), 0
        places = sorted({*dependent, *forced})
        before = plan.predictions_before(places).tolist()
        for place, made in zip(places, before, strict=True):
            if place in forced or own[place] >= predicted:
                begins.add(place)
                predicted = made
        return begins

    def _former(self, outcome: int) -> float | None:
        """Return what the prediction of a corrected outcome had taught before; None for nothing."""
        correction = self.plan.corrections[outcome]
        number = correction.outcome - self.plan.folded
        if number < 0:
            return correction.former
        return float(self.examples.values[number]) if self.learned[number] else None

    def _run(self, outcomes: slice, predictions: slice) -> None:
        """Run a segment."""
        begin, end = self.known + predictions.start, self.known + predictions.stop
        rows, interactions, known = self.examples.rows[outcomes], self.interactions, self.known
        features = self.features[:known]
        if len(rows) < len(self.examples.rows) or end - begin < len(self.plan.event_ids):
            own = rows >= begin
            before = rows[~own]
            known, features = len(before), self.features[before]
            rows = np.where(own, known + rows - begin, np.cumsum(~own) - 1)
            picked = [*before.tolist(), *range(begin, end)]
            interactions = InteractionColumns(
                tuple([column[row] for row in picked] for column in interactions.ids),
                [interactions.timestamps[row] for row in picked],
            )
        n = known + end - begin
        labels, weights = np.zeros(n), None
        labels[rows] = self.examples.values[outcomes]
        if self.examples.weights is not None:
            weights = np.ones(n)
            weights[rows] = self.examples.weights[outcomes]
        mask = self._outcome_mask[outcomes.start + predictions.start : outcomes.stop + predictions.stop]
        order, included = np.empty(len(mask), dtype=np.int64), np.ones(len(mask), dtype=np.bool_)
        order[~mask], order[mask] = np.arange(known, n), n + rows
        included[mask] = self.learned[outcomes]
        former = None
        if self.plan.corrections:
            former, replacing = self._former_labels(outcomes, rows, n)
            order[np.flatnonzero(mask)[replacing]] += n
        self._model.folded += len(rows)
        if not included.any():
            return
        values = None if self._values is None else self._values[predictions]
        outputs = self._model.run(
            order[included], interactions, features, labels, values, weights=weights, former=former
        )
        self.features[begin:end], self.scores[begin:end] = outputs.features, outputs.scores
        self.probabilities += outputs.probabilities
        self.challengers += outputs.challengers

    def _former_labels(
        self, outcomes: slice, rows: Integers, n: int
    ) -> tuple[FormerLabels | None, list[int]]:
        """Return the labels that outcomes of a segment replace, by its n interactions, and which outcomes."""
        if not self.replaces:
            return None, []
        formers, weights, replacing = np.zeros(n), np.ones(n), list[int]()
        for number in sorted(self.plan.corrections):
            if not outcomes.start <= number < outcomes.stop or (former := self._former(number)) is None:
                continue
            replacing.append(number - outcomes.start)
            formers[rows[replacing[-1]]] = former
            weights[rows[replacing[-1]]] = self.plan.corrections[number].weight
        return FormerLabels(formers, weights) if replacing else None, replacing

    # Label policies.

    def _apply_policy(self, policy: LabelPolicy, outcomes: slice) -> None:
        """Learn nothing where the policy decides so, and count labels that were not asked for."""
        prior, own = self.plan.prior.asked, self.asked or []
        for number in range(outcomes.start, outcomes.stop):
            row, came = int(self.examples.rows[number]), self.plan.label_timestamps[number] is not None
            asked = prior[row] if row < self.known else own[row - self.known]
            if not policy.learns(asked, came):
                self.learned[number] = False
            self._counters["unasked"] += asked is False and came and number not in self.plan.corrections

    def _ask(self, policy: LabelPolicy, predictions: slice) -> None:
        """Decide for each of these predictions whether its label is asked for, and count the requests."""
        plan, asked, counters = self.plan, self.asked, self._counters
        assert asked is not None
        first = plan.first
        if self._model.features.item_entities:
            first = counters[ITEMS] - len(plan.event_ids)
        rows = slice(self.known + predictions.start, self.known + predictions.stop)
        columns = self.scores[rows].tolist(), self.features[rows].tolist()
        for predicted, event_id, score, features in zip(
            count(first + predictions.start), self._asked_about(predictions), *columns, strict=False
        ):
            wanted = policy.asks(event_id, score, features, predicted=predicted, asked=counters["asked"])
            counters["asked"] += wanted
            asked.append(wanted)

    def _asked_about(self, predictions: slice) -> Iterable[Id | tuple[Id, ...]]:
        """Return the events of these predictions, with the ids of the item where they are of slates."""
        event_ids, items = self.plan.event_ids[predictions], self._model.features.item_entities
        if not (event_ids and items):
            return event_ids
        return zip(event_ids, *(self.plan.ids[number][predictions] for number in items), strict=True)
