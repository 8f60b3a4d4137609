"""A model that follows the outcomes of a partition, with the live tables that its predictions need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.features.live_tables import Rows
from pipeline.model.model import Model
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.inputs import Interaction
from pipeline.records.outcome_decoder import DecodedOutcomes
from pipeline.recovery.libraries import ARITHMETIC_HERE
from pipeline.serving.answers import Scores
from pipeline.serving.origins import PointOrigins
from pipeline.serving.scoring import explain_scores, message_values, scores_of, unknown_entities


class ServedModel:
    """The model of one partition under the settings and with the arithmetic of one epoch.

    It is used by one thread at a time.

    Parameters
    ----------
    partition
        Number of the partition.
    model
        A model of these settings, new or restored from a snapshot.
    settings
        The settings that its outputs depend on, by name.
    epoch
        Number of epochs of settings before.
    arithmetic
        The arithmetic of the state record that it was restored from, see `pipeline.recovery.libraries`;
        without one, that of this process.
    rows
        The rows of the live tables, in the order of the stream's definition.
    versions
        Offset up to which each table was applied, by name.

    Attributes
    ----------
    as_of
        Stream time of the state record that the model stands at, in milliseconds.
    """

    def __init__(
        self,
        partition: int,
        model: Model,
        settings: Mapping[str, str],
        epoch: int,
        *,
        arithmetic: str = ARITHMETIC_HERE,
        rows: Sequence[Rows] = (),
        versions: Mapping[str, int] | None = None,
    ) -> None:
        self.partition = partition
        self.settings = settings
        self.epoch = epoch
        self.arithmetic = arithmetic
        self.as_of = NO_TIMESTAMP
        self.rows = tuple(rows)
        self.versions = dict(versions or {})
        self._model = model
        self._origins = PointOrigins()

    @property
    def outcomes_learned(self) -> int:
        """The number of outcomes that the model has learned: its version."""
        return self._model.outcomes_learned

    @property
    def challengers(self) -> tuple[str, ...]:
        """The names of the challengers."""
        return (*self._model.challengers,)

    def fold(self, outcomes: DecodedOutcomes) -> None:
        """Learn the next outcomes.

        Raises
        ------
        ValueError
            They are not the next ones, in order. Nothing has changed.
        """
        learner = self._model.learner
        updates = learner.updates
        self._model.learn_columns(outcomes)
        self._origins.note(learner, updates, outcomes)

    def score_candidates(
        self,
        interactions: Sequence[Interaction],
        challenger: str | None = None,
        *,
        explain: bool = False,
        variances: bool = False,
    ) -> Scores:
        """Score candidates; the model does not change.

        Parameters
        ----------
        interactions
            The candidates, at least one: interactions that have not happened.
        challenger
            The challenger whose scores are wanted; None for the champion's.
        explain
            Whether the scores are to be explained.
        variances
            Whether the variances of the champion's scores are wanted.

        Raises
        ------
        UnknownChallengerError
            There is no such challenger.
        """
        model = self._model
        outputs = model.predict_many(interactions, message_values(model, interactions, self.rows))
        found = scores_of(model, outputs, challenger)
        return Scores(
            self.partition,
            model.outcomes_learned,
            self.epoch,
            self.arithmetic,
            self.as_of,
            dict(self.versions),
            *found,
            unknown_entities(model, interactions),
            explain_scores(model, interactions, outputs.features, self._origins, challenger)
            if explain
            else None,
            model.variances(interactions, outputs.features).tolist() if variances else None,
        )
