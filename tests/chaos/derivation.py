"""Every prediction made again, and every outcome held against its prediction and the input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from forks import LOSSES, Forks, probability
from forks.losses import loss_value
from pipeline.config.settings import Corrections, Learner
from pipeline.features.feature_set import FeatureSet
from pipeline.features.statistics import RunningStatistics
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.learner_settings import learner_settings
from pipeline.records.outputs import Outcome, Prediction, Share
from tests.chaos.challengers import Challenger
from tests.chaos.expected import Expected, Step
from tests.chaos.world import NO_LABEL

WATCHED = 0.75
SHARED = (
    "event_id",
    "ids",
    "timestamp",
    "score",
    "probability",
    "predicted",
    "features",
    "model_version",
    "challengers",
    "asked",
    "tables",
)
"""Fields that an outcome has from its prediction."""


class WrongError(Exception):
    """Something is not as it has to be."""


def agree(what: str, found: object, wanted: object) -> None:
    """Raise `WrongError` unless both are equal."""
    if found != wanted:
        raise WrongError(f"{what} is {found!r}, has to be {wanted!r}")


def derive(
    expected: Expected,
    predictions: Iterable[Prediction],
    outcomes: Iterable[Outcome],
    challengers: Mapping[str, Challenger],
    policy: LabelPolicy | None = None,
    *,
    corrections: Corrections = "off",
    replayed: bool = False,
) -> Iterator[Step]:
    """Go through a partition's outputs in the order in which they say that they came about.

    A prediction was made when as many outcomes had been learned as its `model_version` says. Statistics and
    learners are fed in that order by a plain loop, which knows no task, join or merge. The challengers know
    nothing at first. Without a policy all labels are learned. Features of live tables follow from the records
    below the offsets that a prediction names, which in a replay follow from its time.

    Raises
    ------
    WrongError
        At the first record that is missing, too many, or not what has to come out, to the last bit.
    """
    derivation = _Derivation(expected, challengers, policy, corrections, replayed=replayed)
    learned = iter(outcomes)
    for prediction in predictions:
        while derivation.outcomes_learned < prediction.model_version:
            outcome = next(learned, None)
            if outcome is None:
                raise WrongError(f"outcome {derivation.outcomes_learned} is missing")
            yield derivation.learn(outcome)
        yield derivation.predict(prediction)
    for outcome in learned:
        yield derivation.learn(outcome)
    agree("the number of predictions", derivation.predicted, len(expected.predicted_events))
    outcomes_due = len(expected.predicted_events) + expected.counters["corrected"]
    agree("the number of outcomes", derivation.outcomes_learned, outcomes_due)


class _Derivation:
    def __init__(
        self,
        expected: Expected,
        challengers: Mapping[str, Challenger],
        policy: LabelPolicy | None,
        corrections: Corrections,
        *,
        replayed: bool,
    ) -> None:
        self.predicted = 0
        self.outcomes_learned = 0
        self._asked = 0
        self._policy = policy
        self._expected = expected
        self._challengers = challengers
        self._replayed = replayed
        features = FeatureSet.of(expected.world.stream)
        self._learner = Forks(learner_settings(Learner(), 0, features=features))
        self._statistics = RunningStatistics(1_000_000, features=features)
        self._waiting: dict[object, Prediction] = {}
        self._corrections = corrections
        self._answered: dict[object, tuple[Prediction, float]] = {}
        """By event, what is closed, and the ratio that was learned; for those that are corrected."""
        self._received_until: Counter[int] = Counter()
        """By other partition, how many of its outcomes are known."""

    def predict(self, prediction: Prediction) -> Step:
        name = f"prediction {self.predicted}"
        agree(f"{name}: sequence", prediction.sequence, self.predicted)
        if self.predicted == len(self._expected.predicted_events):
            raise WrongError(f"{name} is one too many: event {prediction.event_id}")
        event, world = self._expected.predicted_events[self.predicted], self._expected.world
        agree(f"{name}: event_id", prediction.event_id, event)
        agree(f"{name}: model_version", prediction.model_version, self.outcomes_learned)
        user, video = int(world.users[event]), int(world.videos[event])
        agree(f"{name}: ids", prediction.ids, (user, video))
        agree(f"{name}: timestamp", prediction.timestamp, int(world.times[event]))
        features = self._statistics.features((user, video)) + self._rows(name, prediction)
        score = self._learner.predict_one(np.array(features))
        agree(f"{name}: features", _bits(prediction.features), _bits(features))
        agree(f"{name}: score", _bits([prediction.score]), _bits([score]))
        agree(f"{name}: probability", prediction.probability, probability(score))
        agree(f"{name}: predicted", prediction.predicted, score > 0.0)
        agree(f"{name}: asked", prediction.asked, self._asks(prediction))
        self._asked += prediction.asked or False
        scores = {
            name: learner.predict_one(np.array(features)) for name, learner in self._challengers.items()
        }
        agree(f"{name}: challengers", list((prediction.challengers or {}).items()), list(scores.items()))
        self._waiting[event] = prediction
        self.predicted += 1
        return Step(event, learned=False)

    def learn(self, outcome: Outcome) -> Step:
        name = f"outcome {self.outcomes_learned}"
        agree(f"{name}: sequence", outcome.sequence, self.outcomes_learned)
        prediction = self._waiting.pop(outcome.event_id, None)
        if prediction is None and outcome.event_id in self._answered:
            return self._correct(name, outcome)
        if prediction is None:
            raise WrongError(f"{name}: event {outcome.event_id} has no prediction, or an outcome already")
        for field in SHARED:
            agree(f"{name}: {field}", getattr(outcome, field, None), getattr(prediction, field, None))
        agree(f"{name}: prediction_sequence", outcome.prediction_sequence, prediction.sequence)
        event = self._expected.predicted_events[prediction.sequence]
        agree(f"{name}: former", outcome.former, None)
        watched, ratio = self._check_label(name, outcome, event)
        for share in outcome.shared or ():
            self._learn_share(name, share)
        if self._policy is None or self._policy.learns(prediction.asked, outcome.status == "labelled"):
            taught = 1.0 if watched else -1.0
            loss = float(loss_value(LOSSES["logistic"], outcome.score, taught))
            expected: tuple[object, ...] = (watched, watched == prediction.predicted, loss)
            self._teach(prediction.features, taught)
            self._statistics.update(prediction.ids, watched, ratio)
        else:
            expected = (None, None, None)
        agree(f"{name}: label, correct, loss", (outcome.label, outcome.correct, outcome.loss), expected)
        if event in self._expected.world.corrected:
            self._answered[event] = prediction, ratio
        self.outcomes_learned += 1
        return Step(event, learned=True)

    def _correct(self, name: str, outcome: Outcome) -> Step:
        """Check the only correction of an event, and learn it."""
        prediction, former = self._answered.pop(outcome.event_id)
        for field in SHARED:
            agree(f"{name}: {field}", getattr(outcome, field, None), getattr(prediction, field, None))
        agree(f"{name}: prediction_sequence", outcome.prediction_sequence, prediction.sequence)
        event = self._expected.predicted_events[prediction.sequence]
        known, ratio = self._expected.world.corrected[event]
        status = "replaced" if self._corrections == "replace" else "corrected"
        found = (outcome.status, outcome.label_timestamp, outcome.watch_ratio, outcome.former)
        agree(f"{name}: status, label_timestamp, watch_ratio, former", found, (status, known, ratio, former))
        watched, features = ratio > WATCHED, np.array(prediction.features)
        taught = 1.0 if watched else -1.0
        loss = float(loss_value(LOSSES["logistic"], outcome.score, taught))
        expected = (watched, watched == prediction.predicted, loss)
        agree(f"{name}: label, correct, loss", (outcome.label, outcome.correct, outcome.loss), expected)
        for share in outcome.shared or ():
            self._learn_share(name, share)
        if self._corrections == "replace":
            self._learner.replace_one(features, 1.0 if former > WATCHED else -1.0, taught)
            self._statistics.replace(prediction.ids, former, ratio)
        else:
            self._teach(prediction.features, taught)
            self._statistics.update(prediction.ids, watched, ratio)
        self.outcomes_learned += 1
        return Step(event, learned=True)

    def _rows(self, name: str, prediction: Prediction) -> list[float]:
        """Return the features of the live tables, as far as the prediction says that they were applied."""
        tables, found = self._expected.tables, list[float]()
        versions: dict[str, int] = getattr(prediction, "tables", {})
        agree(f"{name}: tables", [*versions], [each.table.name for each in tables])
        for each, version in zip(tables, versions.values(), strict=True):
            if not each.end <= version <= len(each.records):
                raise WrongError(
                    f"{name}: table {each.table.name} was applied up to {version}, has to be from {each.end} "
                    f"to {len(each.records)}"
                )
            if self._replayed:
                agree(f"{name}: table {each.table.name}", version, each.end_at(prediction.timestamp))
            each.apply_until(version)
            found += each.row(prediction.ids)
        return found

    def _asks(self, prediction: Prediction) -> bool | None:
        if self._policy is None:
            return None
        return self._policy.asks(
            prediction.event_id,
            prediction.score,
            prediction.features,
            predicted=self.predicted,
            asked=self._asked,
        )

    def _learn_share(self, name: str, share: Share) -> None:
        message = f"{name}: what partition {share.partition} tells is from an outcome on that"
        agree(message, share.since, self._received_until[share.partition])
        self._received_until[share.partition] = share.until
        self._statistics.merge_shared([share])
        for example in share.examples:
            self._teach(example.features, 1.0 if example.label else -1.0)

    def _teach(self, features: list[float], taught: float) -> None:
        for learner in (self._learner, *self._challengers.values()):
            learner.learn_one(np.array(features), taught)

    def _check_label(self, name: str, outcome: Outcome, event: int) -> tuple[bool, float]:
        world = self._expected.world
        known, ratio = int(world.label_times[event]), float(world.ratios[event])
        labelled = known != NO_LABEL
        agree(f"{name}: status", outcome.status, "labelled" if labelled else "expired")
        agree(f"{name}: label_timestamp", outcome.label_timestamp, known if labelled else None)
        agree(f"{name}: watch_ratio", outcome.watch_ratio, ratio if labelled else None)
        return (ratio > WATCHED, ratio) if labelled else (False, 0.0)


def _bits(numbers: list[float]) -> bytes:
    return np.array(numbers, dtype=np.float64).tobytes()
