"""The model of one partition: running statistics and learners, a fold over the partition's outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from struct import Struct
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, Self, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from forks import LOSSES, Forks, ForksSettings, probability
from forks.learning.event_loop import loss_values
from forks.losses import loss_value, probabilities
from pipeline.config.tree import Learner
from pipeline.errors import ConfigError
from pipeline.features.statistics import FEATURES, RunningStatistics
from pipeline.features.tables import Tables
from pipeline.features.target import TARGET
from pipeline.model.shadow import ChallengerSettings, ShadowLearner
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction
from pipeline.records.outputs import Example, Outcome, Share

_running_bytes = Struct(f"{len(FEATURES)}d").pack
"""Running features as float64: the quickest way from lists to an array."""


def learner_settings(learner: Learner, static_columns: int, where: str = "learner") -> ForksSettings:
    """The learner's settings for a context vector of `static_columns` and the running block.

    The `paper` preset sees every column. `practical` sees the running block: the static columns of
    KuaiRec measured as no help to it. Errors name settings as those of the section `where`.

    Raises
    ------
    ConfigError
        Naming the setting and what is accepted.
    """
    dimension = static_columns + len(FEATURES)
    running = (static_columns, dimension)
    blocks = {} if learner.preset == "paper" else {"linear_columns": running, "kernel_columns": running}
    return preset_settings(learner, dimension, where, **blocks)


def preset_settings(
    learner: Learner, dimension: int, where: str = "learner", **defaults: Any
) -> ForksSettings:
    """The preset's settings for vectors of `dimension` columns, with `defaults`, and over them the overrides.

    Raises
    ------
    ConfigError
        Naming the setting and what is accepted.
    """
    preset = ForksSettings.paper if learner.preset == "paper" else ForksSettings.practical
    types = get_type_hints(ForksSettings)
    del types["dimension"]
    changes = {
        name: checked_setting(where, name, value, types, "preset")
        for name, value in learner.overrides.items()
    }
    try:
        return preset(dimension, **(defaults | changes))
    except ValueError as error:
        raise ConfigError(f"{where}.{error}") from error


def checked_setting(where: str, name: str, value: object, types: Mapping[str, Any], *others: str) -> Any:
    """A setting's value, as its type has it.

    Parameters
    ----------
    where
        The section.
    name, value
        As they were given.
    types
        Of the settings that there are.
    others
        Names that are accepted there, too.

    Raises
    ------
    ConfigError
        Naming the setting and what is accepted.
    """
    if name not in types:
        accepted = ", ".join([*others, *sorted(types)])
        raise ConfigError(f"{where}.{name} is not a setting. Accepted here: {accepted}")
    try:
        return TypeAdapter(types[name]).validate_python(value)
    except ValidationError as error:
        raise ConfigError(f"{where}.{name}: {error.errors()[0]['msg']} (got {value!r})") from error


def warm_up(settings: ForksSettings) -> None:
    """Compile what learner and statistics call, through all stages; quick where it was done before."""
    chance = np.random.default_rng(0)
    events = 2 * (settings.budget + settings.cycle)
    labels = np.where(chance.random(events) < 0.5, -1.0, 1.0)
    learner = Forks(settings)
    learner.learn_many(chance.normal(size=(events, settings.dimension)), labels)
    learner.run(np.zeros((1, settings.dimension)), np.ones(1), np.arange(2))
    loss_values(np.zeros(1), np.ones(1), LOSSES[settings.loss])
    probabilities(np.zeros(1))
    statistics = RunningStatistics(max_entities=1)
    statistics.run(np.arange(2), [0], [0], np.ones(1, dtype=np.bool_), np.ones(1))
    statistics.merge_shared([])


def running_blocks(records: Sequence[Outcome | Example]) -> NDArray[np.float64]:
    """The running features of records, shape (n, features)."""
    numbers = np.frombuffer(b"".join([_running_bytes(*record.features) for record in records]))
    return numbers.reshape(len(records), len(FEATURES))


class InteractionLike(Protocol):
    """Who was shown what, and when."""

    @property
    def user_id(self) -> Id: ...
    @property
    def video_id(self) -> Id: ...
    @property
    def timestamp(self) -> int: ...


class InteractionColumns(NamedTuple):
    """The same of several, column by column."""

    users: list[Id]
    videos: list[Id]
    timestamps: list[int]

    @classmethod
    def of(cls, plays: Sequence[InteractionLike]) -> Self:
        """Take the columns of plays."""
        return cls(
            [play.user_id for play in plays],
            [play.video_id for play in plays],
            [play.timestamp for play in plays],
        )


class ModelOutput(NamedTuple):
    """What the model says of an interaction, and from which running features."""

    features: list[float]
    score: float
    probability: float | None
    predicted: bool
    challengers: dict[str, float] | None
    """Their scores by name; None where there are none."""


class ModelOutputs(NamedTuple):
    """The same of several, column by column."""

    features: NDArray[np.float64]
    """Shape (n, features)."""
    scores: list[float]
    probabilities: list[float] | list[None]
    challengers: list[dict[str, float]] | list[None]


class Model:
    """Predicts from ids and time; changes only by `learn_one`.

    The context vector is the concatenation of user block, video block and running block, of
    `tables.columns + len(FEATURES)` columns. The tables are looked up only for a learner that sees them.

    Parameters
    ----------
    settings
        The learner's settings; their dimension is that of the context vector.
    tables
        The static blocks.
    max_entities
        Users, and videos, that running statistics are kept for.
    challengers
        Learners that see the same events, by name, in the order of their names.
    """

    def __init__(
        self,
        settings: ForksSettings,
        tables: Tables,
        max_entities: int,
        challengers: Mapping[str, ChallengerSettings] = MappingProxyType({}),
    ) -> None:
        self.tables = tables
        self.learner = Forks(settings)
        self.challengers = {name: ShadowLearner(each, tables.columns) for name, each in challengers.items()}
        self.statistics = RunningStatistics(max_entities, tables.tags.lists if tables.tags else None)
        self.folded = 0
        """Outcomes folded so far: the model's version."""
        self._x = np.zeros(tables.columns + len(FEATURES))
        self._uses_tables = any(
            min(each.linear_columns[0], each.kernel_columns[0]) < tables.columns
            for each in (settings, *challengers.values())
            if isinstance(each, ForksSettings)
        )

    def predict(self, interaction: Interaction) -> ModelOutput:
        """Predict whether the video will be watched."""
        features = self.statistics.features(interaction.user_id, interaction.video_id)
        score = self.score(interaction, features)
        logistic = self.learner.settings.loss == "logistic"
        likely = probability(score) if logistic else None
        return ModelOutput(
            features, score, likely, score > 0.0, self._challenger_scores(interaction, features)
        )

    def score(self, play: InteractionLike, features: list[float]) -> float:
        """The score of a play whose running features are `features`."""
        return self.learner.predict_one(self._context(play.user_id, play.video_id, play.timestamp, features))

    def _challenger_scores(self, play: InteractionLike, features: list[float]) -> dict[str, float] | None:
        """What the challengers say, if there are any."""
        if not self.challengers:
            return None
        x = self._context(play.user_id, play.video_id, play.timestamp, features)
        return {name: shadow.score(x) for name, shadow in self.challengers.items()}

    def run(
        self,
        order: NDArray[np.int64],
        plays: InteractionColumns,
        known_features: NDArray[np.float64],
        labels: NDArray[np.bool_],
        watch_ratios: NDArray[np.float64],
    ) -> ModelOutputs:
        """Judge plays and learn from plays, in any order, with the same bits as one by one.

        Parameters
        ----------
        order
            Steps, shape (steps,): i judges play i, n + i learns from play i.
        plays
            n of them. Those that are not judged are the first.
        known
            The running features by which these were judged before, a row for each.
        labels, watch_ratios
            Of the plays that are learned, shapes (n,).
        """
        judged = slice(len(known_features), None)
        running = self.statistics.run(order, plays.users, plays.videos, labels, watch_ratios)
        running[: len(known_features)] = known_features
        loss = self.learner.settings.loss
        y = TARGET.values(loss, labels, watch_ratios)
        X = self._contexts(plays, running)
        scores = self.learner.run(X, y, order)[judged]
        likely = probabilities(scores).tolist() if loss == "logistic" else [None] * len(scores)
        said: list[dict[str, float]] | list[None] = [None] * len(scores)
        if self.challengers:
            shadows = self.challengers.values()
            columns = [shadow.run(X, labels, watch_ratios, order)[judged].tolist() for shadow in shadows]
            said = [dict(zip(self.challengers, row, strict=True)) for row in zip(*columns, strict=True)]
        return ModelOutputs(running[judged], scores.tolist(), likely, said)

    def losses(
        self, scores: NDArray[np.float64], labels: NDArray[np.bool_], watch_ratios: NDArray[np.float64]
    ) -> list[float]:
        """`loss` of each."""
        loss = self.learner.settings.loss
        y = TARGET.values(loss, labels, watch_ratios)
        values: list[float] = loss_values(scores, y, LOSSES[loss]).tolist()
        return values

    def loss(self, score: float, label: bool, watch_ratio: float) -> float:
        """Compute the learner's loss at a score; `pipeline.features.target.Target` has what it learns."""
        loss = self.learner.settings.loss
        return float(loss_value(LOSSES[loss], score, TARGET.value(loss, label, watch_ratio)))

    def learn_one(self, outcome: Outcome) -> None:
        """Learn from an outcome, whose sequence has to be the next one, and first from what it has of others.

        The features are those of the outcome, as they were when the prediction was made. An outcome
        without a label changes nothing else but the count.
        """
        if outcome.sequence != self.folded:
            raise ValueError(f"outcome {outcome.sequence} is not the next one, {self.folded}")
        self.folded += 1
        self.merge_shared(outcome.shared or ())
        if outcome.label is not None:
            self.learn_example(outcome, outcome.features, outcome.label, outcome.watch_ratio or 0.0)

    def learn_many(self, outcomes: Sequence[Outcome], features: NDArray[np.float64] | None = None) -> None:
        """`learn_one` each of the outcomes, with the same bits, at a tenth of the cost.

        Parameters
        ----------
        outcomes
            n of them.
        features
            Theirs, shape (n, features), where they are at hand.

        Raises
        ------
        ValueError
            They are not the next ones, in order. Nothing has changed.
        """
        sequences = [outcome.sequence for outcome in outcomes]
        expected = range(self.folded, self.folded + len(outcomes))
        if sequences != list(expected):
            found, due = next(pair for pair in zip(sequences, expected, strict=True) if pair[0] != pair[1])
            raise ValueError(f"outcome {found} is not the next one, {due}")
        if features is None:
            features = running_blocks(outcomes)
        begins = [place for place, outcome in enumerate(outcomes) if outcome.shared]
        for begin, end in pairwise([0, *begins, len(outcomes)]):
            self._learn_chunk(outcomes[begin:end], features[begin:end])

    def merge_shared(self, shares: Sequence[Share]) -> None:
        """Learn from what other partitions tell of their outcomes."""
        if not shares:
            return
        self.statistics.merge_shared([counts for share in shares for counts in share.videos])
        examples = [example for share in shares for example in share.examples]
        labels = np.array([example.label for example in examples], dtype=np.bool_)
        ratios = np.array([example.watch_ratio for example in examples], dtype=np.float64)
        self._learn_columns(InteractionColumns.of(examples), running_blocks(examples), labels, ratios)

    def _learn_chunk(self, outcomes: Sequence[Outcome], features: NDArray[np.float64]) -> None:
        """Fold outcomes of which only the first may have something of others."""
        for outcome in outcomes[:1]:
            self.merge_shared(outcome.shared or ())
        self.folded += len(outcomes)
        taught = [outcome for outcome in outcomes if outcome.label is not None]
        if len(taught) < len(outcomes):
            features = features[[outcome.label is not None for outcome in outcomes]]
        n, plays = len(taught), InteractionColumns.of(taught)
        labels = np.array([play.label for play in taught], dtype=np.bool_)
        ratios = np.array([play.watch_ratio or 0.0 for play in taught], dtype=np.float64)
        self._learn_columns(plays, features, labels, ratios)
        self.statistics.run(np.arange(n, 2 * n), plays.users, plays.videos, labels, ratios)

    def learn_example(
        self, play: InteractionLike, features: list[float], watched: bool, watch_ratio: float
    ) -> None:
        """Learn from a play whose running features were `features` when it was judged.

        What the learner is taught, `pipeline.features.target.Target` says.
        """
        x = self._context(play.user_id, play.video_id, play.timestamp, features)
        self.learner.learn_one(x, TARGET.value(self.learner.settings.loss, watched, watch_ratio))
        for shadow in self.challengers.values():
            shadow.learn_example(x, watched, watch_ratio)
        self.statistics.update(play.user_id, play.video_id, watched, watch_ratio)

    def _learn_columns(
        self,
        plays: InteractionColumns,
        running: NDArray[np.float64],
        labels: NDArray[np.bool_],
        watch_ratios: NDArray[np.float64],
    ) -> None:
        y = TARGET.values(self.learner.settings.loss, labels, watch_ratios)
        X = self._contexts(plays, running)
        self.learner.predict_and_learn_many(X, y)  # nobody asks for the losses
        for shadow in self.challengers.values():
            shadow.learn_many(X, labels, watch_ratios)

    def _contexts(self, plays: InteractionColumns, running: NDArray[np.float64]) -> NDArray[np.float64]:
        X = np.zeros((len(running), len(self._x)))
        if self._uses_tables:
            for x, user, video, timestamp in zip(X, *plays, strict=True):
                self.tables.fill(x, user, video, timestamp)
        X[:, self.tables.columns :] = running
        return X

    def _context(
        self, user_id: Id, video_id: Id, timestamp: int, features: list[float]
    ) -> NDArray[np.float64]:
        if self._uses_tables:
            self.tables.fill(self._x, user_id, video_id, timestamp)
        self._x[self.tables.columns :] = features
        return self._x
