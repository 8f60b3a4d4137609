"""The model's state as bytes, and back: safetensors, no pickle.

Equal models give equal bytes, whatever their past: arrays are C-contiguous, entities stand in the
order of eviction, and scalars are JSON in a tensor of their own (the metadata that the format offers
has no fixed order).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from forks import Forks, ForksSettings, State
from pipeline.config.feature_layout import TableLayout
from pipeline.errors import StateError
from pipeline.features.adjusted_effects import EffectsState
from pipeline.features.entities import Key
from pipeline.features.totals import BASE_COLUMNS
from pipeline.model.model import Model
from pipeline.model.settings_text import CHALLENGERS_PREFIX, LEARNER_PREFIX
from pipeline.model.snapshot_limits import (
    EFFECTS_PREFIX,
    SPARSE_PREFIX,
    check_effects,
    check_header,
    check_learner,
    check_magnitude,
    check_rival,
    check_scalars,
    check_sparse,
    check_totals,
)
from pipeline.records.encoding import encode
from pipeline.records.fields import Count, Id, IdPair

SNAPSHOT_VERSION = 3

Tensors: TypeAlias = dict[str, NDArray[Any]]


class SnapshotScalars(msgspec.Struct):
    """The part of the state that is not arrays."""

    outcomes_learned: Count = msgspec.field(name="folded")
    """Number of outcomes that the model has learned."""
    everything: tuple[float, float, float]
    """Number of all labels, of positive ones, and sum of their values."""
    learner: dict[str, int | float]
    """The scalars of the learner by name."""
    version: int = SNAPSHOT_VERSION
    """Version of this format."""
    challengers: dict[str, dict[str, int | float]] | msgspec.UnsetType = msgspec.UNSET
    """The scalars of each challenger by name, as `learner` has them. Absent if there are none."""
    sparse: dict[str, int | float] | msgspec.UnsetType = msgspec.UNSET
    """The scalars of the sparse part. Absent if there is none."""


class _Version(msgspec.Struct):
    version: int


_IDS = msgspec.json.Decoder(list[Id])
_PAIRS = msgspec.json.Decoder(list[IdPair])
_SCALARS = msgspec.json.Decoder(SnapshotScalars)
_VERSION = msgspec.json.Decoder(_Version)
_DAMAGE = (
    SafetensorError,
    msgspec.DecodeError,
    LookupError,
    TypeError,
    ValueError,
    OverflowError,
    RecursionError,
)


def pack(model: Model) -> bytes:
    """Return a model's state as safetensors.

    Tensors: `learner.*` as the learner names them, `challengers.NAME.*` the same of each challenger,
    `NAME.ids` and `NAME.totals` (n, columns) of each table, such as users, `tags.totals` (tags, 3),
    `effects.*` as `pipeline.features.adjusted_effects.EffectsState` names them with effects, `sparse.*` as
    `forks.sparse.SparsePart.state` names them with a sparse part, and `plain`, the JSON of version, counts
    and scalars.
    """
    tensors, scalars = _split(model.learner.state(), LEARNER_PREFIX)
    challengers = {}
    for name, shadow in model.challengers.items():
        arrays, challengers[name] = _split(shadow.learner.state(), _prefix(name))
        tensors |= arrays
    statistics = model.statistics
    for name, table in statistics.named_tables():
        ids, tensors[f"{name}.totals"] = table.state()
        tensors[f"{name}.ids"] = _json(ids)
    tensors["tags.totals"] = statistics.tags
    if statistics.effects is not None:
        effects = statistics.effects.state(*(table.rows() for table in statistics.adjusted_tables()))
        tensors |= {EFFECTS_PREFIX + name: tensor for name, tensor in effects._asdict().items()}
    sparse: dict[str, int | float] | msgspec.UnsetType = msgspec.UNSET
    if model.sparse is not None:
        arrays, sparse = _split(model.sparse.state(), SPARSE_PREFIX)
        tensors |= arrays
    everything = tuple(statistics.everything[0].tolist())
    tensors["plain"] = _json(
        SnapshotScalars(
            model.outcomes_learned,
            everything,
            scalars,
            challengers=challengers or msgspec.UNSET,
            sparse=sparse,
        )
    )
    return save(tensors)


def parse(data: bytes) -> tuple[Tensors, SnapshotScalars]:
    """Return the tensors and the scalars of a snapshot: see `pack`.

    Raises
    ------
    StateError
        The bytes are not a snapshot of this version.
    """
    try:
        tensors = load(data)
        scalar_bytes = tensors["plain"].tobytes()
        version = _VERSION.decode(scalar_bytes).version
        if version != SNAPSHOT_VERSION:
            raise StateError(
                f"the snapshot has version {version}, this program reads version {SNAPSHOT_VERSION} "
                "(docs/upgrading.md)"
            )
        return tensors, _SCALARS.decode(scalar_bytes)
    except _DAMAGE as error:
        raise _damaged(error) from error


def snapshot_size(head: bytes, model: Model) -> int:
    """Return the size of a snapshot in bytes, given its first chunk.

    Raises
    ------
    StateError
        The header names what no snapshot of such a model holds: see
        `pipeline.model.snapshot_limits.check_header`.
    """
    try:
        return check_header(head, model)
    except _DAMAGE as error:
        raise _damaged(error) from error


def unpack(data: bytes, model: Model) -> None:
    """Restore the state of a snapshot into a model with the same settings.

    Raises
    ------
    StateError
        The bytes are not a snapshot of this version, or not of such a model.
    """
    size = snapshot_size(data, model)
    if size != len(data):
        raise StateError(f"the snapshot is damaged: it has {len(data)} bytes where its header names {size}")
    tensors, scalars = parse(data)
    try:
        _restore(model, tensors, scalars)
    except _DAMAGE as error:
        raise _damaged(error) from error


def _restore(model: Model, tensors: Tensors, scalars: SnapshotScalars) -> None:
    check_scalars("plain", {"folded": scalars.outcomes_learned})
    model.learner = _learner(model.learner.settings, tensors, LEARNER_PREFIX, scalars.learner)
    challengers = scalars.challengers or {}
    if challengers.keys() != model.challengers.keys():
        raise ValueError(f"its challengers are {[*challengers]}, not {[*model.challengers]}")
    for name, shadow in model.challengers.items():
        if isinstance(shadow.settings, ForksSettings):
            shadow.learner = _learner(shadow.settings, tensors, _prefix(name), challengers[name])
        else:
            check_rival(shadow.settings, challengers[name])
            shadow.restore(_state(tensors, _prefix(name), challengers[name]))
    if (scalars.sparse is msgspec.UNSET) != (model.sparse is None):
        raise ValueError("it has a sparse part where the model has none, or the other way round")
    if model.sparse is not None:
        saved = _state(tensors, SPARSE_PREFIX, scalars.sparse or {})
        check_scalars("sparse", scalars.sparse or {})
        check_sparse(saved)
        model.sparse.restore(saved)
    statistics = model.statistics
    everything = np.array([scalars.everything])
    check_totals("everything", everything)
    for layout, table in zip(model.features.layout.tables, statistics.tables, strict=True):
        keys = table_keys(tensors, layout)
        table.restore(keys, _totals(tensors, layout.name, len(keys), table.columns))
    if statistics.effects is not None:
        effects = EffectsState(*(tensors[EFFECTS_PREFIX + name] for name in EffectsState._fields))
        check_effects(effects, *map(len, statistics.adjusted_tables()))
        statistics.effects.restore(effects)
    statistics.tags[:] = _totals(tensors, "tags", len(statistics.tags), BASE_COLUMNS)
    statistics.everything[0] = everything
    model.outcomes_learned = scalars.outcomes_learned


def _learner(
    settings: ForksSettings, tensors: Tensors, prefix: str, scalars: dict[str, int | float]
) -> Forks:
    """Return a learner of these settings with the state of the snapshot."""
    check_scalars(prefix.rstrip("."), scalars)
    state = _state(tensors, prefix, scalars)
    learner = Forks.from_state(settings, state)
    check_learner(settings, state)
    check_magnitude(learner.state())
    return learner


def _damaged(error: Exception) -> StateError:
    return StateError(f"the snapshot is damaged or not of this model: {error!r}")


def _split(state: State, prefix: str) -> tuple[Tensors, dict[str, int | float]]:
    """Return a learner's arrays as tensors, and its scalars."""
    arrays = {prefix + name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    return arrays, {name: value for name, value in state.items() if not isinstance(value, np.ndarray)}


def _state(tensors: Tensors, prefix: str, scalars: dict[str, int | float]) -> State:
    """Return the learner's state that `_split` divided."""
    arrays = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    return arrays | scalars


def _prefix(challenger: str) -> str:
    return f"{CHALLENGERS_PREFIX}{challenger}."


def table_keys(tensors: Tensors, table: TableLayout) -> Sequence[Key]:
    """Return the keys in a table of a snapshot, in the order of eviction."""
    text = tensors[f"{table.name}.ids"].tobytes()
    return _IDS.decode(text) if len(table.parts) == 1 else _PAIRS.decode(text)


def _totals(tensors: Tensors, name: str, rows: int, columns: int) -> NDArray[np.float64]:
    totals = tensors[f"{name}.totals"]
    if totals.dtype != np.float64 or totals.shape != (rows, columns):
        raise ValueError(f"{name}.totals are {totals.dtype} {totals.shape}, not float64 {(rows, columns)}")
    check_totals(f"{name}.totals", totals)
    return totals


def _json(value: object) -> NDArray[np.uint8]:
    return np.frombuffer(encode(value), dtype=np.uint8)
