"""The model runs a plan: all at once, or in segments where something else has to happen in between."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

import numpy as np

from pipeline.join.prediction_columns import PredictionColumns, no_predictions
from pipeline.join.records import ChallengerScores
from pipeline.model.columns import NO_ROWS, FormerLabels, InteractionColumns, ModelOutputs
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

    It is run in parts: one begins before an outcome if shares of other partitions are learned right before
    it. The segments of a part begin before an outcome if a policy looks at the score of its prediction, which
    is made in the segment before.

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
        self.outcomes = outcomes = OutcomeColumns.concat(plan.outcomes, plan.outcomes_learned)
        self._own = len(self.predictions) - self.known
        if self.predictions.of_slates:
            self.rows = self.known + np.searchsorted(self.predictions.numbers[self.known :], outcomes.numbers)
        else:
            self.rows = self.known + outcomes.numbers - plan.first
        self.rows[outcomes.numbers < plan.first] = np.arange(self.known)
        # Without the sign of a zero, which no label teaches.
        self.taught = np.where(outcomes.expired, 0.0, outcomes.values) + 0.0
        self.learned = np.ones(len(outcomes), dtype=np.bool_)
        self._expired = outcomes.expired
        if missing_label is None:
            self.learned = ~self._expired
        self.probabilities: list[float | None] = []
        self.formers: dict[int, float | None] = {}
        self._challengers: list[ChallengerScores | None] = []
        self._coins = np.zeros(self._own)
        self._corrections = sorted(plan.corrections)
        ids = self.predictions.entities if pieces else tuple([] for _ in range(model.features.entities))
        self.interactions = InteractionColumns(ids, self.predictions.timestamps)
        self._versions = self.predictions.versions[self.known :] - plan.outcomes_learned
        self._outcome_mask = np.ones(self._own + len(outcomes), dtype=np.bool_)
        self._outcome_mask[np.arange(self._own) + self._versions] = False

    def finish(self) -> None:
        """Run all of it."""
        if self._policy is not None and self._policy.tosses_coins:
            self._coins = self._policy.coins(self._asked_about())
        if self._policy is not None and not self._policy.needs_scores:
            self._ask(self._policy, slice(0, self._own))
        for outcomes, predictions in self._parts(sorted(self.plan.received)):
            if outcomes.start < outcomes.stop:
                self._model.merge_shared(self.plan.received.get(outcomes.start, []))
            self._run(outcomes, predictions)
        self.formers = {number: self._former(number) for number in self.plan.corrections}
        if self._challengers:
            prior = self.predictions.challengers[: self.known] or [None] * self.known
            self.predictions.challengers = [*prior, *self._challengers]

    def _parts(self, begins: list[int]) -> Iterator[tuple[slice, slice]]:
        """Yield the outcomes and the predictions of each part, of which others than the first begin there."""
        before = self._predictions_before(begins)
        outcomes, predictions = [0, *begins, len(self.outcomes)], [0, *before, self._own]
        for number in range(len(begins) + 1):
            yield (
                slice(outcomes[number], outcomes[number + 1]),
                slice(predictions[number], predictions[number + 1]),
            )

    def _segments(self, outcomes: slice, predictions: slice) -> Iterator[tuple[slice, slice]]:
        """Yield the outcomes and the predictions of each segment of a part.

        A segment ends before an outcome of a prediction that it makes, if a policy looks at scores.
        """
        if self._policy is None or not self._policy.needs_scores:
            yield outcomes, predictions
            return
        begin, made, own = outcomes.start, predictions.start, (self.rows[outcomes] - self.known).tolist()
        places = (outcomes.start + flagged(self.rows[outcomes] >= self.known + made)).tolist()
        for place, before in zip(places, self._predictions_before(places), strict=True):
            if own[place - outcomes.start] >= made:
                yield slice(begin, place), slice(made, before)
                begin, made = place, before
        yield slice(begin, outcomes.stop), slice(made, predictions.stop)

    def _predictions_before(self, outcomes: list[int]) -> list[int]:
        """Return how many own predictions come before each of these outcomes, which ascend."""
        return np.searchsorted(self._versions, outcomes, side="right").tolist() if outcomes else []

    def _former(self, outcome: int) -> float | None:
        """Return what the prediction of a corrected outcome had taught before; None for nothing."""
        correction = self.plan.corrections[outcome]
        number = correction.outcome - self.plan.outcomes_learned
        if number < 0:
            return correction.former
        return float(self.taught[number]) if self.learned[number] else None

    def _run(self, outcomes: slice, predictions: slice) -> None:
        """Run a part, which begins with what other partitions share, segment by segment."""
        every, begin, end = self.predictions, self.known + predictions.start, self.known + predictions.stop
        rows, interactions, known = self.rows[outcomes], self.interactions, self.known
        features = every.features[:known]
        if len(rows) < len(self.rows) or end - begin < self._own:
            own = rows >= begin
            before = rows[~own]
            known, features = len(before), every.features[before]
            rows = np.where(own, known + rows - begin, np.cumsum(~own) - 1)
            interactions = interactions.select(np.concatenate([before, np.arange(begin, end)]))
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
        steps, learning = np.empty(len(mask), dtype=np.int64), flagged(mask)
        steps[~mask], steps[mask] = np.arange(known, known + end - begin), n + rows
        values = every.values[predictions] if every.values.size else None
        former = self._former_labels(outcomes, rows, n)
        run = self._model.begin(
            interactions, features, labels, values, weights=weights, former=former, again=again
        )
        for learned, predicted in self._segments(outcomes, predictions):
            if self._policy is not None:
                self._apply_policy(self._policy, learned)
            of_learned = learning[learned.start - outcomes.start : learned.stop - outcomes.start]
            if former is not None:
                steps[of_learned[self._replacing(learned)]] += n
            first = outcomes.start + predictions.start
            part = slice(learned.start + predicted.start - first, learned.stop + predicted.stop - first)
            order = steps[part]
            if not (kept := self.learned[learned]).all():
                included = np.ones(len(order), dtype=np.bool_)
                included[of_learned - part.start] = kept
                order = order[included]
            self._model.outcomes_learned += learned.stop - learned.start
            if len(order):
                of_own = (
                    known + predicted.start - predictions.start,
                    known + predicted.stop - predictions.start,
                )
                self._store(run.advance(order, *of_own), predicted)
            if self._policy is not None and self._policy.needs_scores:
                self._ask(self._policy, predicted)
        run.finish()

    def _store(self, outputs: ModelOutputs, predictions: slice) -> None:
        """Keep what the model predicted."""
        rows = slice(self.known + predictions.start, self.known + predictions.stop)
        self.predictions.features[rows], self.predictions.scores[rows] = outputs.features, outputs.scores
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
        here = np.array(self._corrections_of(outcomes), dtype=np.int64)
        again: Integers = here[rows[here] >= known]
        return again

    def _replacing(self, outcomes: slice) -> list[int]:
        """Return which outcomes of a segment replace a label that was learned."""
        places = self._corrections_of(outcomes)
        return [place for place in places if self._former(outcomes.start + place) is not None]

    def _corrections_of(self, outcomes: slice) -> list[int]:
        """Return which outcomes of a part or segment are corrections, in order."""
        first = bisect_left(self._corrections, outcomes.start)
        last = bisect_left(self._corrections, outcomes.stop)
        return [number - outcomes.start for number in self._corrections[first:last]]

    def _former_labels(self, outcomes: slice, rows: Integers, n: int) -> FormerLabels | None:
        """Return the labels that outcomes of a part may replace, by its n interactions; None without."""
        if not (self.replaces and self.plan.corrections):
            return None
        formers, weights = np.zeros(n), np.ones(n)
        for place in self._corrections_of(outcomes):
            correction = self.plan.corrections[outcomes.start + place]
            before = correction.outcome - self.plan.outcomes_learned
            formers[rows[place]] = self.taught[before] if before >= 0 else correction.former or 0.0
            weights[rows[place]] = correction.weight
        return FormerLabels(formers, weights)

    # Label policies.

    def _apply_policy(self, policy: LabelPolicy, outcomes: slice) -> None:
        """Learn nothing where the policy decides so, and count labels that were not asked for."""
        refused = self.predictions.asked[self.rows[outcomes]] == 0
        if not refused.any():
            return
        came = ~self._expired[outcomes]
        self.learned[outcomes] &= policy.learns_many(refused, came)
        unasked = refused & came
        unasked[self._corrections_of(outcomes)] = False
        self._counters["unasked"] += int(np.count_nonzero(unasked))

    def _ask(self, policy: LabelPolicy, predictions: slice) -> None:
        """Decide for each of these predictions whether its label is asked for, and count the requests."""
        every, counters = self.predictions, self._counters
        rows = slice(self.known + predictions.start, self.known + predictions.stop)
        first = counters[ITEMS] - self._own if every.of_slates else self.plan.first
        asked = policy.ask(
            self._coins[predictions],
            every.scores[rows],
            every.features[rows],
            predicted=first + predictions.start,
            asked=counters["asked"],
        )
        every.asked[rows] = asked
        counters["asked"] += int(np.count_nonzero(asked))

    def _asked_about(self) -> Texts:
        """Return the ids of the events of the own predictions, with those of the item in slates."""
        ids = self.predictions.ids.rows(self.known, len(self.predictions))
        if not self.predictions.of_slates:
            return ids.column(0)
        columns = [0, *(1 + entity for entity in self._model.features.item_entities)]
        named = [ids.column(number).decode(decode_ids) for number in columns]
        return Texts.of([encode(each) for each in zip(*named, strict=True)])
