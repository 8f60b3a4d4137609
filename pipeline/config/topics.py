"""The topics of a pipeline: their names, and the settings that they are created with."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.config.settings import Config, Registry
from pipeline.config.stream import KUAIREC, Stream

LARGEST_DEAD_LETTER = 32 * 1024 * 1024
"""Bytes of a message that is written as a dead letter, at most."""
LEAST_OUTPUT = 1_000_000
"""Bytes of a message that outputs have to take: those of a chunk of a snapshot, and its headers."""
LARGEST_BATCH = 4 * 1024 * 1024
"""Bytes of a batch of records of one output, at most. A transaction has one of each, mostly."""
KEEP_FOREVER = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""Settings of a topic that is the log from which everything is derived again."""
TABLE_COMPACTION_LAG_MS = 7 * 86_400_000
"""Milliseconds for which a table's earlier versions are kept: a restart needs those that were in force."""
SHARED_RETENTION_MS = 30 * 86_400_000
"""Milliseconds for which shared outcomes are kept: partitions write those that they learn as their own."""


@dataclass(frozen=True)
class Topics:
    """The topics of one pipeline.

    Examples
    --------
    >>> Topics("test-").labels
    'test-watch-labels'
    """

    prefix: str = ""
    requests_labels: bool = False
    """Whether labels are requested, which needs one more topic."""
    input_prefix: str | None = None
    """The prefix of the inputs; None for `prefix`."""
    stream: Stream = KUAIREC
    """The definition of the stream, which names the inputs."""
    registry: Registry = field(default_factory=Registry)
    """The registry with the schemas of messages, where they have schemas."""

    @property
    def interactions(self) -> str:
        return self._input(self.stream.interactions.topic)

    @property
    def labels(self) -> str:
        return self._input(self.stream.labels.topic)

    @property
    def predictions(self) -> str:
        return f"{self.prefix}predictions"

    @property
    def outcomes(self) -> str:
        return f"{self.prefix}outcomes"

    @property
    def dead_letters(self) -> str:
        return f"{self.prefix}dead-letters"

    @property
    def checkpoints(self) -> str:
        return f"{self.prefix}checkpoints"

    @property
    def shared(self) -> str:
        return f"{self.prefix}shared"

    @property
    def label_requests(self) -> str:
        return f"{self.prefix}label-requests"

    def _input(self, name: str) -> str:
        return (self.prefix if self.input_prefix is None else self.input_prefix) + name

    @property
    def inputs(self) -> tuple[str, str]:
        """The topics that workers read."""
        return self.interactions, self.labels

    @property
    def tables(self) -> tuple[str, ...]:
        """The topics of the live tables."""
        return tuple(map(self.table, self.stream.tables))

    def table(self, name: str) -> str:
        """Return the topic of a live table."""
        return self._input(self.stream.tables[name].topic)

    @property
    def keyed_tables(self) -> tuple[str, ...]:
        """The topics of those live tables whose key is that of the inputs: they may be divided alike."""
        key = self.stream.key_entity
        entity = None if key is None else [*self.stream.entities][key]
        return tuple(self.table(name) for name, table in self.stream.tables.items() if table.entity == entity)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The topics that workers write."""
        always = (self.predictions, self.outcomes, self.dead_letters, self.checkpoints, self.shared)
        return (*always, self.label_requests) if self.requests_labels else always

    @property
    def all(self) -> tuple[str, ...]:
        """All topics of the pipeline."""
        return (*self.inputs, *self.tables, *self.outputs)

    def settings(self, name: str) -> dict[str, str]:
        """Return the settings with which a topic is created."""
        if name in self.tables:
            return {"cleanup.policy": "compact", "min.compaction.lag.ms": str(TABLE_COMPACTION_LAG_MS)}
        if name in self.inputs:
            return KEEP_FOREVER
        largest = LARGEST_DEAD_LETTER if name == self.dead_letters else LARGEST_BATCH
        return self._retention(name) | {"max.message.bytes": str(largest)}

    def _retention(self, output: str) -> dict[str, str]:
        """Return how long an output's records are kept."""
        if output == self.checkpoints:
            return {"cleanup.policy": "compact"}
        if output == self.shared:
            return {"cleanup.policy": "delete", "retention.ms": str(SHARED_RETENTION_MS)}
        return KEEP_FOREVER


def topics_of(config: Config) -> Topics:
    """Return the topics of a pipeline with this configuration."""
    kafka = config.kafka
    return Topics(
        kafka.prefix,
        requests_labels=config.labels.policy != "all",
        input_prefix=kafka.input_prefix,
        stream=config.stream,
        registry=config.registry,
    )
