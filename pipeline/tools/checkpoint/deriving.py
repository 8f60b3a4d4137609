"""Derive the state record of a partition from its outputs and its processed inputs. No Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from pipeline.config.settings import Join as JoinSettings
from pipeline.errors import StateError
from pipeline.model.model import Model
from pipeline.records.dead_letter import DeadLetterHeaders
from pipeline.records.fields import INTEGER_LIMIT
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import RawMessage
from pipeline.records.names import Fault
from pipeline.records.outputs import Outcome, Prediction, Share
from pipeline.recovery.libraries import MIXED, Derivable, derivable_from, libraries_here
from pipeline.task.aligned_inbox import next_window_end
from pipeline.task.state import Libraries, State, TableState, counters
from pipeline.tools.audit.state_check import UNRECORDED
from pipeline.tools.checkpoint.input_summary import InputSummary
from pipeline.tools.checkpoint.output_summary import OutputSummary

PROGRESS_EVERY = 1_000
"""Outcomes between two calls of the progress function."""


class PartitionLogs(NamedTuple):
    """Records of a partition in all topics, each topic from its beginning."""

    predictions: Iterable[tuple[int, Prediction]]
    """With their offsets, as outcomes; of a slate, that of each item."""
    outcomes: Iterable[tuple[int, Outcome]]
    dead_letters: Iterable[DeadLetterHeaders]
    interactions: Iterable[RawMessage]
    labels: Iterable[RawMessage]
    shares: Callable[[int], Iterable[tuple[int, Share]]]
    """Returns what a partition has shared, with the offsets."""
    table: Callable[[str, int], TableState]
    """Returns the state of a live table, by name, applied up to an offset."""


class PartitionToDerive(NamedTuple):
    """What a state is derived for."""

    partition: int
    topics: tuple[str, str]
    """Names of the inputs."""
    offsets: tuple[int, int]
    """Committed offsets of the inputs."""
    settings: dict[str, str]
    """Settings that the outputs depend on, as text by name."""
    join: JoinSettings
    decoders: InputDecoders
    shares: bool
    """Whether the partition shares outcomes with others."""
    tables: Mapping[str, str] = MappingProxyType({})
    """Topics of the live tables by name."""


def derive_state(
    target: PartitionToDerive,
    logs: PartitionLogs,
    model: Model,
    last: State | None,
    progress: Callable[[int], None],
) -> tuple[State, int]:
    """Derive the state record that a worker would have written with the committed offsets.

    Two counters of early labels and of predictions that were crowded out are not in the topics. They are at
    least those of the last usable state record. Where this record names predictions of another arithmetic,
    no prediction is compared, and another epoch of libraries begins: the model is not the one that made them.

    Parameters
    ----------
    target
        What to derive it for.
    logs
        Records of the partition.
    model
        A model of the settings that has learned nothing, and learns all outcomes.
    last
        The last usable state record, of earlier offsets, if there is one: it has what no output tells.
    progress
        Function to call now and then with the number of outcomes learned.

    Returns
    -------
    State
        The state record, without a snapshot.
    int
        An offset below which there is no later outcome.

    Raises
    ------
    StateError
        Records are missing or do not follow from one another under these settings, or a message is not
        accounted for.
    """
    if last is not None and last.settings != target.settings:
        raise StateError(
            f"partition {target.partition}: the last usable state record has other settings than this "
            "configuration. Give this command the workers' settings"
        )
    since = last.earlier[-1].predictions if last is not None and last.earlier else 0
    if _has_other_arithmetic(last):
        since = INTEGER_LIMIT
    outputs = OutputSummary(target.partition, model, target.join, since)
    for learned in outputs.read(logs.predictions, logs.outcomes):
        if learned % PROGRESS_EVERY == 0:
            progress(learned)
    inputs = InputSummary(outputs, logs.dead_letters, target.join, target.decoders, model.features.event)
    interactions, labels = target.topics
    inputs.read_interactions(interactions, logs.interactions, target.offsets[0])
    inputs.read_labels(labels, logs.labels, target.offsets[1])
    tables = {
        name: logs.table(
            name, max(outputs.tables.get(name, 0), inputs.read_table(topic), _applied(last, name))
        )
        for name, topic in target.tables.items()
    }
    state = _state(target, outputs, inputs, logs.shares, last, tables=tables)
    return state, outputs.outcome_offsets.floor(state.outcomes)


def _state(
    target: PartitionToDerive,
    outputs: OutputSummary,
    inputs: InputSummary,
    shares: Callable[[int], Iterable[tuple[int, Share]]],
    last: State | None,
    *,
    tables: dict[str, TableState],
) -> State:
    waiting = inputs.waiting()
    stream_time = max(inputs.stream_time, -1 if last is None else last.stream_time)
    published = _published(shares(target.partition), last) if target.shares else None
    taken, windows = _taken(outputs, shares)
    return State(
        partition=target.partition,
        settings=target.settings,
        stream_time=stream_time,
        interactions=inputs.positions[target.topics[0]],
        labels=inputs.positions[target.topics[1]],
        snapshot=None,
        waiting=waiting,
        counters=_counters(outputs, inputs, len(waiting), last, tables=bool(tables)),
        earlier=[] if last is None else last.earlier,
        published=published,
        taken=taken,
        windows=windows or UNSET,
        tables=tables or UNSET,
        libraries=_libraries(last),
        **outputs.finish(stream_time, published),
    )


def _has_other_arithmetic(last: State | None) -> bool:
    return last is not None and derivable_from(last) != Derivable(0, 0)


def _libraries(last: State | None) -> Libraries | UnsetType:
    """Return the libraries of the outputs so far, all of which this process has derived if it can."""
    if last is None or not last.predictions:
        return Libraries(dict(libraries_here()))
    if not _has_other_arithmetic(last):
        return last.libraries
    return Libraries(dict(MIXED), last.libraries.earlier if last.libraries else [])


def _counters(
    outputs: OutputSummary, inputs: InputSummary, waiting: int, last: State | None, *, tables: bool
) -> dict[str, int]:
    names = counters(corrections=outputs.join.answered is not None, tables=tables, slates=outputs.slates)
    counted = counters() + outputs.counters + inputs.counters
    counted["predictions"] = outputs.predictions
    for name in UNRECORDED:
        counted[name] = 0 if last is None else last.counters.get(name, 0)
    counted["early"] = max(counted["early"], waiting)
    rare = [Fault.PAST.value] if counted[Fault.PAST] else []
    return {name: counted[name] for name in (*names, *rare)}


def _applied(last: State | None, name: str) -> int:
    """Return how far a state record has applied a table."""
    tables = {} if last is None else last.tables or {}
    return tables[name].offset if name in tables else 0


def _published(shares: Iterable[tuple[int, Share]], last: State | None) -> int:
    """Return the end of a partition's last share."""
    ends = [share.until for _, share in shares]
    before = last.published if last is not None else 0
    return max(ends, default=before or 0)


def _taken(
    outputs: OutputSummary, shares: Callable[[int], Iterable[tuple[int, Share]]]
) -> tuple[dict[int, int], dict[int, int]]:
    """Return the offset after the last share that was learned, by other partition, and `State.windows`."""
    taken = dict[int, int]()
    windows = dict[int, int]()
    for partition, until in sorted(outputs.learned.items()):
        for offset, share in shares(partition):
            if share.until <= until:
                taken[partition] = offset + 1
                if share.window_end is not None:
                    windows[partition] = next_window_end(share, windows.get(partition, 0))
    return taken, windows
