"""The model runs a plan: all at once, or in segments where something else has to happen in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from pipeline.join.prediction_columns import PredictionColumns, no_predictions
from pipeline.join.records import ChallengerScores
from pipeline.model.columns import NO_ROWS, FormerLabels, InteractionColumns
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.model import Model
from pipeline.records.encoding import encode
from pipeline.records.places import flagged
from pipeline.records.texts import Texts, decode_ids
from pipeline.task.columns import Integers, OutcomeColumns
from pipeline.task.plan import Plan
from pipeline.task.state import ITEMS


class PlanRun:
    """What the model predicts of a plan.

    A segment begins before an outcome if shares of other partitions are learned right before it, or if a
    policy looks at the score of its prediction, which is made in the segment before.

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
        The number of predictions that were made before.
    predictions
        All predictions: those made before, in the order of their outcomes, then the own ones.
    interactions
        The interactions of all predictions.
    outcomes
        The outcomes.
    rows
        The row of each outcome's prediction, shape (outcomes,).
    taught
        The value that each outcome teaches, shape (outcomes,).
    learned
        Whether each is learned, shape (outcomes,).
    probabilities
        Those of the own predictions.
    formers
        What the corrected outcomes of these numbers had taught before; None for nothing.
    """

    def __init__(
        self,
        plan: Plan,
        model: Model,
        policy: LabelPolicy | None,
        counters: Counter[str],
        missing_label: bool | float | None,
        *,
        replaces: bool,
    ) -> None:
        self.plan, self._model, self._policy, self._counters = plan, model, policy, counters
        self.replaces = replaces
        self.known = sum(map(len, plan.prior))
        pieces = [*plan.prior, *plan.predictions]
        self.predictions = PredictionColumns.concat(pieces) if pieces else no_predictions()
        self.predictions.of_slates = bool(model.features.item_entities)
        self.outcomes = outcomes = OutcomeColumns.concat(plan.outcomes, plan.folded)
        self._own = len(self.predictions) - self.known
        if self.predictions.of_slates:
            self.rows = self.known + np.searchsorted(self.predictions.numbers[self.known :], outcomes.numbers)
        else:
            self.rows = self.known + outcomes.numbers - plan.first
        self.rows[outcomes.numbers < plan.first] = np.arange(self.known)
        # Without the sign of a zero, which no label teaches.
        self.taught = np.where(outcomes.expired, 0.0, outcomes.values) + 0.0
        self.learned = np.ones(len(outcomes), dtype=np.bool_)
        if missing_label is None:
            self.learned = ~outcomes.expired
        self.probabilities: list[float | None] = []
        self.formers: dict[int, float | None] = {}
        self._challengers: list[ChallengerScores | None] = []
        ids = self.predictions.entities if pieces else tuple([] for _ in range(model.features.entities))
        self.interactions = InteractionColumns(ids, self.predictions.timestamps)
        self._versions = self.predictions.versions[self.known :] - plan.folded
        self._outcome_mask = np.ones(self._own + len(outcomes), dtype=np.bool_)
        self._outcome_mask[np.arange(self._own) + self._versions] = False

    def finish(self) -> None:
        """Run all of it."""
        policy, everything = self._policy, slice(0, self._own)
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
        if self._challengers:
            prior = self.predictions.challengers[: self.known] or [None] * self.known
            self.predictions.challengers = [*prior, *self._challengers]

    def _segments(self) -> Iterator[tuple[slice, slice]]:
        """Yield the outcomes and the predictions of each segment."""
        begins = sorted(self._needed_begins())
        before = self._predictions_before(begins)
        outcomes, predictions = [0, *begins, len(self.outcomes)], [0, *before, self._own]
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
        if not after:
            return forced
        own = self.rows - self.known
        begins, predicted = set[int](), 0
        places = sorted({*flagged(own >= 0).tolist(), *forced})
        for place, made in zip(places, self._predictions_before(places), strict=True):
            if place in forced or own[place] >= predicted:
                begins.add(place)
                predicted = made
        return begins

    def _predictions_before(self, outcomes: list[int]) -> list[int]:
        """Return how many own predictions come before each of these outcomes, which ascend."""
        return np.searchsorted(self._versions, outcomes, side="right").tolist() if outcomes else []

    def _former(self, outcome: int) -> float | None:
        """Return what the prediction of a corrected outcome had taught before; None for nothing."""
        correction = self.plan.corrections[outcome]
        number = correction.outcome - self.plan.folded
        if number < 0:
            return correction.former
        return float(self.taught[number]) if self.learned[number] else None

    def _run(self, outcomes: slice, predictions: slice) -> None:
        """Run a segment."""
        every, begin, end = self.predictions, self.known + predictions.start, self.known + predictions.stop
        rows, interactions, known = self.rows[outcomes], self.interactions, self.known
        features = every.features[:known]
        if len(rows) < len(self.rows) or end - begin < self._own:
            own = rows >= begin
            before = rows[~own]
            known, features = len(before), every.features[before]
            rows = np.where(own, known + rows - begin, np.cumsum(~own) - 1)
            picked = np.concatenate([before, np.arange(begin, end)])
            ids = tuple([*map(column.__getitem__, picked.tolist())] for column in interactions.ids)
            interactions = InteractionColumns(ids, every.timestamps[picked])
        n = known + end - begin
        if len(places := self._corrected_in(outcomes, rows, known)):
            again, rows = rows[places], rows.copy()
            rows[places] = np.arange(n, n + len(places))
            n, interactions = n + len(places), interactions.append(again)
        else:
            again = NO_ROWS
        labels, weights = np.zeros(n), None
        labels[rows] = self.taught[outcomes]
        if self.outcomes.weights is not None:
            weights = np.ones(n)
            weights[rows] = self.outcomes.weights[outcomes]
        mask = self._outcome_mask[outcomes.start + predictions.start : outcomes.stop + predictions.stop]
        order, included = np.empty(len(mask), dtype=np.int64), np.ones(len(mask), dtype=np.bool_)
        order[~mask], order[mask] = np.arange(known, known + end - begin), n + rows
        included[mask] = self.learned[outcomes]
        former = None
        if self.plan.corrections:
            former, replacing = self._former_labels(outcomes, rows, n)
            order[flagged(mask)[replacing]] += n
        self._model.folded += len(rows)
        if not included.any():
            return
        values = every.values[predictions] if every.values.size else None
        outputs = self._model.run(
            order[included],
            interactions,
            features,
            labels,
            values,
            weights=weights,
            former=former,
            again=again,
        )
        every.features[begin:end], every.scores[begin:end] = outputs.features, outputs.scores
        self.probabilities += outputs.probabilities
        if names := tuple(self._model.challengers):
            self._challengers += [ChallengerScores.of(each or {}, names) for each in outputs.challengers]

    def _corrected_in(self, outcomes: slice, rows: Integers, known: int) -> Integers:
        """Return the outcomes of a segment that correct the label of a prediction which is made in it.

        Parameters
        ----------
        outcomes
            Those of the segment.
        rows
            The rows of their predictions.
        known
            How many of these were made before.
        """
        if not self.plan.corrections:
            return NO_ROWS
        every = np.array([*self.plan.corrections], dtype=np.int64) - outcomes.start
        here: Integers = every[(every >= 0) & (every < len(rows))]
        return here[rows[here] >= known]

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
        asked = self.predictions.asked[self.rows[outcomes]]
        came, refused = ~self.outcomes.expired[outcomes], asked == 0
        if policy.learns_unasked:
            self.learned[outcomes] &= ~refused | came
        else:
            self.learned[outcomes] &= ~refused
        first_label = np.ones(len(asked), dtype=np.bool_)
        places = [number - outcomes.start for number in self.plan.corrections]
        first_label[[place for place in places if 0 <= place < len(asked)]] = False
        self._counters["unasked"] += int(np.count_nonzero(refused & came & first_label))

    def _ask(self, policy: LabelPolicy, predictions: slice) -> None:
        """Decide for each of these predictions whether its label is asked for, and count the requests."""
        every, counters = self.predictions, self._counters
        rows = slice(self.known + predictions.start, self.known + predictions.stop)
        first = counters[ITEMS] - self._own if every.of_slates else self.plan.first
        asked = policy.ask(
            self._asked_about(rows),
            every.scores[rows],
            every.features[rows],
            predicted=first + predictions.start,
            asked=counters["asked"],
        )
        every.asked[rows] = asked
        counters["asked"] += int(np.count_nonzero(asked))

    def _asked_about(self, rows: slice) -> Texts:
        """Return the ids of the events of these rows, with those of the item where they are of slates."""
        ids = self.predictions.ids.rows(rows.start, rows.stop)
        if not self.predictions.of_slates:
            return ids.column(0)
        columns = [0, *(1 + entity for entity in self._model.features.item_entities)]
        named = [ids.column(number).decode(decode_ids) for number in columns]
        return Texts.of([encode(each) for each in zip(*named, strict=True)])
