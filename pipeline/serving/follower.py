"""A follower: it holds the workers' models by folding committed outcomes, and scores candidates with them."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.config.tree import Config
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction
from pipeline.serving.answers import FollowerFigures, Scores


class Follower:
    """Holds the model of every partition, outside the group; writes nothing to Kafka.

    Parameters
    ----------
    config
        The whole configuration. Learner, challengers and target are those of the group's state records.
    """

    def __init__(self, config: Config) -> None:
        self._config = config

    @property
    def partitions(self) -> int:
        """The number of partitions of the topics."""
        raise NotImplementedError

    @property
    def figures(self) -> FollowerFigures:
        """Where the follower is: replaced about once a second, never changed."""
        raise NotImplementedError

    def partition_of(self, key: Id) -> int:
        """Return the partition that messages with this key are in."""
        raise NotImplementedError

    def score(
        self,
        partition: int,
        interactions: Sequence[Interaction],
        *,
        challenger: str | None = None,
        explain: bool = False,
    ) -> Scores:
        """Score candidates with the model of a partition as it is now; nothing is learned.

        Parameters
        ----------
        partition
            Its number.
        interactions
            The candidates: interactions that have not happened.
        challenger
            The challenger whose scores are wanted; None for the champion's.
        explain
            Whether the scores are to be explained.

        Raises
        ------
        PartitionNotReadyError
            The partition's model is not restored.
        UnknownChallengerError
            There is no such challenger.
        """
        raise NotImplementedError

    def start(self) -> None:
        """Begin to restore and to follow, in a thread of its own; topics and settings are checked first."""
        raise NotImplementedError

    def stop(self) -> None:
        """End the thread, and wait for it."""
        raise NotImplementedError
