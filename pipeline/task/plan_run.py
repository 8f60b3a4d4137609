"""The model runs a plan: all at once, or in parts where shares of other partitions are learned in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from pipeline.join.prediction_columns import UNDECIDED, PredictionColumns, no_predictions
from pipeline.join.records import ChallengerScores
from pipeline.model.columns import NO_ROWS, FormerLabels, InteractionColumns, ModelOutputs
from pipeline.model.label_policy import LabelPolicy, PreparedPolicy, no_policy
from pipeline.model.model import Model
from pipeline.model.model_run import Labels
from pipeline.model.segments import LEARNED, NOTHING
from pipeline.records.encoding import encode
from pipeline.records.places import flagged
from pipeline.records.texts import Texts, decode_ids
from pipeline.task.columns import Corrections, Floats, Integers, OutcomeColumns
from pipeline.task.plan import Plan
from pipeline.task.state import ITEMS


class PlanRun:
    """What the model predicts of a plan.

    It is run in parts: one begins before an outcome if shares of other partitions are learned right before
    it.

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
        What the predictions of outcomes that correct others had taught before, NaN for nothing, shape
        (corrections,).
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
        self.formers = np.empty(0)
        self._challengers: list[ChallengerScores | None] = []
        self._coins = np.zeros(self._own)
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
            self._ask(self._policy)
        for outcomes, predictions in self._parts(sorted(self.plan.received)):
            if outcomes.start < outcomes.stop:
                self._model.merge_shared(self.plan.received.get(outcomes.start, []))
            self._run(outcomes, predictions)
        self.formers = self._formers(self.plan.corrections)
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

    def _predictions_before(self, outcomes: list[int]) -> list[int]:
        """Return how many own predictions come before each of these outcomes, which ascend."""
        return np.searchsorted(self._versions, outcomes, side="right").tolist() if outcomes else []

    def _formers(self, corrections: Corrections) -> Floats:
        """Return what the predictions of corrections had taught before, NaN for nothing, shape (n,)."""
        numbers, formers = corrections.corrected - self.plan.outcomes_learned, corrections.formers.copy()
        here = flagged(numbers >= 0)
        numbers = numbers[here]
        formers[here] = np.where(self.learned[numbers], self.taught[numbers], np.nan)
        return formers

    def _run(self, outcomes: slice, predictions: slice) -> None:
        """Run a part, which begins with what other partitions share."""
        every, begin, end = self.predictions, self.known + predictions.start, self.known + predictions.stop
        mask = self._outcome_mask[outcomes.start + predictions.start : outcomes.stop + predictions.stop]
        if not len(mask):
            return
        rows, interactions, prior = self.rows[outcomes], self.interactions, np.arange(self.known)
        if len(rows) < len(self.rows) or end - begin < self._own:
            own = rows >= begin
            prior = rows[~own]
            rows = np.where(own, len(prior) + rows - begin, np.cumsum(~own) - 1)
            interactions = interactions.select(np.concatenate([prior, np.arange(begin, end)]))
        known, again = len(prior), NO_ROWS
        n = known + end - begin
        corrections = self.plan.corrections.among(outcomes)
        # Those that correct the label of a prediction which is made in this part.
        if len(places := corrections.rows[rows[corrections.rows] >= known]):
            again, rows = rows[places], rows.copy()
            rows[places] = np.arange(n, n + len(places))
            n, interactions = n + len(places), interactions.append(again)
        values, weights = np.zeros(n), None
        values[rows] = self.taught[outcomes]
        if self.outcomes.weights is not None:
            weights = np.ones(n)
            weights[rows] = self.outcomes.weights[outcomes]
        steps = np.empty(len(mask), dtype=np.int64)
        steps[~mask], steps[mask] = np.arange(known, known + end - begin), n + rows
        labels, former = Labels.all(len(steps)), self._former_labels(corrections, rows, n)
        labels.came[mask], labels.learned[mask] = ~self._expired[outcomes], self.learned[outcomes]
        if former is not None:
            labels.replaces[mask] = self._replaced(corrections, outcomes.start, flagged(mask))
        run = self._model.begin(
            interactions,
            every.features[prior],
            values,
            every.values[predictions] if every.values.size else None,
            weights=weights,
            former=former,
            again=again,
        )
        policy = self._policy_of(prior, predictions, n)
        self._store(run.run(steps, labels, policy), predictions)
        self.learned[outcomes] = labels.learned[mask]
        every.asked[begin:end] = policy.asked[known : known + end - begin]
        self._model.outcomes_learned += outcomes.stop - outcomes.start
        self._count(policy, outcomes, corrections)

    def _store(self, outputs: ModelOutputs, predictions: slice) -> None:
        """Keep what the model predicted."""
        rows = slice(self.known + predictions.start, self.known + predictions.stop)
        self.predictions.features[rows], self.predictions.scores[rows] = outputs.features, outputs.scores
        self.probabilities += outputs.probabilities
        if names := tuple(self._model.challengers):
            self._challengers += [ChallengerScores.of(each or {}, names) for each in outputs.challengers]

    def _replaced(self, corrections: Corrections, first: int, steps: Integers) -> Integers:
        """Return the step whose label each outcome of a part replaces, if that was learned; shape (n,).

        Parameters
        ----------
        corrections
            Those of the part.
        first
            The number of its first outcome.
        steps
            The steps of its outcomes, shape (n,).
        """
        replaced = np.full(len(steps), NOTHING)
        numbers = corrections.corrected - self.plan.outcomes_learned - first
        here, learned = numbers >= 0, ~np.isnan(self._formers(corrections))
        replaced[corrections.rows[learned]] = LEARNED
        replaced[corrections.rows[here]] = steps[numbers[here]]
        return replaced

    def _former_labels(self, corrections: Corrections, rows: Integers, n: int) -> FormerLabels | None:
        """Return the labels that outcomes of a part may replace, by its n interactions; None without."""
        if not (self.replaces and len(self.plan.corrections)):
            return None
        formers, weights, rows = np.zeros(n), np.ones(n), rows[corrections.rows]
        numbers = corrections.corrected - self.plan.outcomes_learned
        here = self.taught[np.maximum(numbers, 0)]
        formers[rows] = np.where(numbers >= 0, here, np.nan_to_num(corrections.formers))
        weights[rows] = corrections.weights
        return FormerLabels(formers, weights)

    # Label policies.

    def _policy_of(self, prior: Integers, predictions: slice, n: int) -> PreparedPolicy:
        """Return the policy for the n interactions of a part."""
        if self._policy is None:
            return no_policy(n)
        begin, end = self.known + predictions.start, self.known + predictions.stop
        rows = np.concatenate([prior, np.arange(begin, end)])
        coins, asked = np.zeros(n), np.full(n, UNDECIDED, dtype=np.int8)
        coins[len(prior) : len(rows)] = self._coins[predictions]
        asked[: len(rows)] = self.predictions.asked[rows]
        counts = np.array([self._predicted_before(predictions), self._counters["asked"]])
        return self._policy.prepared(coins, asked, counts)

    def _count(self, policy: PreparedPolicy, outcomes: slice, corrections: Corrections) -> None:
        """Count the labels that a policy asked for, and those that came and were not asked for."""
        if self._policy is None:
            return
        if policy.looks:
            self._counters["asked"] = int(policy.counts[1])
        unasked = (self.predictions.asked[self.rows[outcomes]] == 0) & ~self._expired[outcomes]
        unasked[corrections.rows] = False
        self._counters["unasked"] += int(np.count_nonzero(unasked))

    def _predicted_before(self, predictions: slice) -> int:
        """Return how many predictions the partition made before these, with slates of items."""
        begin: int = predictions.start
        return begin + (self._counters[ITEMS] - self._own if self.predictions.of_slates else self.plan.first)

    def _ask(self, policy: LabelPolicy) -> None:
        """Decide for each prediction whether its label is asked for, and count the requests."""
        every, counters = self.predictions, self._counters
        asked = policy.ask(
            self._coins,
            every.scores[self.known :],
            every.features[self.known :],
            predicted=self._predicted_before(slice(0, self._own)),
            asked=counters["asked"],
        )
        every.asked[self.known :] = asked
        counters["asked"] += int(np.count_nonzero(asked))

    def _asked_about(self) -> Texts:
        """Return the ids of the events of the own predictions, with those of the item in slates."""
        ids = self.predictions.ids.rows(self.known, len(self.predictions))
        if not self.predictions.of_slates:
            return ids.column(0)
        columns = [0, *(1 + entity for entity in self._model.features.item_entities)]
        named = [ids.column(number).decode(decode_ids) for number in columns]
        return Texts.of([encode(each) for each in zip(*named, strict=True)])
