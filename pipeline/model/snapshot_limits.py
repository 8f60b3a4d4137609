"""What the settings allow a snapshot to hold, checked before any of it is allocated.

The header of a safetensors file names each tensor with its type, shape and place. It stands in the first
chunk of a snapshot. So names, types, shapes and the size of the whole are compared with the model before the
other chunks are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from forks import Forks, ForksSettings
from forks.algorithm.tracking import NEW, SETTLED, UNCHANGED
from forks.rivals import SkeGD
from forks.sparse import SparsePart
from forks.sparse.part import NUMBERS
from forks.sparse.scores import BINNED_AFTER
from forks.state import State
from pipeline.features.adjusted_effects import EffectsState
from pipeline.features.effect_arrays import (
    COUNT,
    LABELS,
    NOISE,
    PRECISION,
    RING,
    SOLVED_NOISE,
    SQUARES,
    USER_COLUMNS,
)
from pipeline.features.statistics import RunningStatistics
from pipeline.features.totals import MAX_RESIDUAL, RECENT_COLUMNS, RECENT_EVENTS
from pipeline.model.model import Model
from pipeline.model.rival import RIVALS, RivalSettings
from pipeline.model.settings_text import CHALLENGERS_PREFIX, LEARNER_PREFIX
from pipeline.records.fields import Count

DType: TypeAlias = Literal["F64", "F32", "I64", "I32", "U32", "U8"]
Length: TypeAlias = int | range
"""The length of an axis, or those that are accepted."""

ANY_LENGTH: Final = range(2**62)
MAX_NUMBER: Final = 2**62
"""Larger counts are not accepted: sums of two of them are 64-bit integers."""
MAX_MAGNITUDE: Final = 1e100
"""Larger numbers in a learner's arrays are not accepted: their products are not finite."""
ID_BYTES: Final = 1_600
"""Bytes of an id as JSON with its comma, at most: 256 characters, each of six bytes if it is escaped. The
brackets of a pair have room in those of its ids."""
SCALAR_BYTES: Final = 16_384
"""Bytes of a learner's scalars as JSON, at most."""

ROUNDING: Final = 1e-3
"""How far below 0 a sum of precisions, and how far from 1 a sum of shares, may come by rounding."""
EFFECTS_PREFIX: Final = "effects."
"""The prefix of the names of the effects' tensors."""
SPARSE_PREFIX: Final = "sparse."
"""That of the tensors of the sparse part."""

_SIZES: Final[Mapping[str, int]] = {"F64": 8, "F32": 4, "I64": 8, "I32": 4, "U32": 4, "U8": 1}
_NAMES: Final[Mapping[str, str]] = {
    "F64": "float64",
    "F32": "float32",
    "I64": "int64",
    "I32": "int32",
    "U32": "uint32",
    "U8": "uint8",
}


class _Tensor(msgspec.Struct, forbid_unknown_fields=True):
    dtype: DType
    shape: list[Count]
    data_offsets: tuple[Count, Count]

    def __str__(self) -> str:
        return f"{_NAMES[self.dtype]} {tuple(self.shape)}"


class _Expected(NamedTuple):
    dtype: DType
    shape: tuple[Length, ...]

    def __str__(self) -> str:
        lengths = [
            str(length) if isinstance(length, int) else f"at most {length.stop - 1}" for length in self.shape
        ]
        return f"{_NAMES[self.dtype]} ({', '.join(lengths)})"


_HEADER = msgspec.json.Decoder(dict[str, _Tensor])


def check_header(head: bytes, model: Model) -> int:
    """Check the header of a snapshot against the model that it is for.

    Parameters
    ----------
    head
        The snapshot's first bytes, the whole header among them.
    model
        A model with the settings of the snapshot's.

    Returns
    -------
    int
        Size of the whole snapshot in bytes.

    Raises
    ------
    ValueError
        The header is no header, or names what a snapshot of such a model cannot hold.
    msgspec.DecodeError, UnicodeDecodeError, RecursionError
        It is not the JSON of a header.
    """
    length = int.from_bytes(head[:8], "little")
    if len(head) < 8 or length > len(head) - 8:
        raise ValueError(f"its header has {length} bytes, of which {max(0, len(head) - 8)} are there")
    found = _HEADER.decode(head[8 : 8 + length])
    expected = _expected(model)
    for name, tensor in found.items():
        if name not in expected:
            raise ValueError(f"it has {name!r:.80}, which no snapshot of these settings has")
        _check_tensor(name, tensor, expected[name])
    for table in model.features.layout.tables:
        _check_ids(table.name, len(table.parts), found)
    return 8 + length + max((tensor.data_offsets[1] for tensor in found.values()), default=0)


def _check_tensor(name: str, tensor: _Tensor, expected: _Expected) -> None:
    fits = len(tensor.shape) == len(expected.shape) and all(
        length == wanted if isinstance(wanted, int) else length in wanted
        for length, wanted in zip(tensor.shape, expected.shape, strict=True)
    )
    if tensor.dtype != expected.dtype or not fits:
        raise ValueError(f"{name} are {tensor}, not {expected}")
    begin, end = tensor.data_offsets
    if end - begin != prod(tensor.shape) * _SIZES[tensor.dtype]:
        raise ValueError(f"{name} are {tensor}, but lie at {begin} to {end}")


def _check_ids(name: str, parts: int, found: Mapping[str, _Tensor]) -> None:
    """Refuse more bytes of ids than as many keys of so many parts can have as there are totals."""
    ids, totals = found.get(f"{name}.ids"), found.get(f"{name}.totals")
    if ids is None or totals is None:
        raise ValueError(f"its {name} are missing")
    if ids.shape[0] > 2 + ID_BYTES * parts * totals.shape[0]:
        raise ValueError(f"{name}.ids have {ids.shape[0]} bytes for {totals.shape[0]} entities")


def _expected(model: Model) -> dict[str, _Expected]:
    """Return type and shape of each tensor that a snapshot may have."""
    expected = _learner_tensors(model.learner.settings, LEARNER_PREFIX)
    for name, shadow in model.challengers.items():
        prefix = f"{CHALLENGERS_PREFIX}{name}."
        if isinstance(shadow.settings, ForksSettings):
            expected |= _learner_tensors(shadow.settings, prefix)
        else:
            expected |= _rival_tensors(shadow.settings, prefix)
    statistics = model.statistics
    for name, table in statistics.named_tables():
        expected[f"{name}.ids"] = _Expected("U8", (ANY_LENGTH,))
        expected[f"{name}.totals"] = _Expected("F64", (range(table.limit + 1), table.columns))
    expected["tags.totals"] = _Expected("F64", (len(statistics.tags), 3))
    if statistics.effects is not None:
        expected |= _effects_tensors(statistics)
    if model.sparse is not None:
        expected |= _sparse_tensors(model.sparse)
    expected["plain"] = _Expected("U8", (range(SCALAR_BYTES * (3 + len(model.challengers)) + 1),))
    return expected


def _effects_tensors(statistics: RunningStatistics) -> dict[str, _Expected]:
    """Return the tensors of adjusted effects."""
    limit, _ = (table.limit for table in statistics.adjusted_tables())
    rows, labels = range(limit + 1), range(RING * limit + 1)
    expected = {
        "users": _Expected("F64", (rows, USER_COLUMNS)),
        "ring": _Expected("I32", (labels,)),
        "ring_signals": _Expected("F32", (labels,)),
        "items": _Expected("F64", (rows, 4)),
        "groups": _Expected("F64", (len(statistics.tags), 2)),
        "everything": _Expected("F64", (3,)),
    }
    return {EFFECTS_PREFIX + name: each for name, each in expected.items()}


def _sparse_tensors(part: SparsePart) -> dict[str, _Expected]:
    """Return the tensors of the sparse part."""
    capacity, state = part.settings.capacity, part.state()
    rows, first = range(capacity + 1), range(BINNED_AFTER + 1)
    weights = range(capacity * len(np.asarray(state["bias"])) + 1)
    expected = {
        "taken": _Expected("U8", (capacity // 8,)),
        "tags": _Expected("U32", (rows,)),
        "clocks": _Expected("U32", (rows,)),
        "known": _Expected("U8", (rows,)),
        "weights": _Expected("F32", (weights, 2)),
        "first": _Expected("F64", (part.settings.numbers, first)),
    }
    expected |= {name: _Expected("F64", np.asarray(state[name]).shape) for name in NUMBERS}
    return {SPARSE_PREFIX + name: each for name, each in expected.items()}


def _learner_tensors(settings: ForksSettings, prefix: str) -> dict[str, _Expected]:
    """Return what either stage of a learner may have."""
    rows = _stored(settings)
    return _initial_tensors(Forks(settings).state(), prefix, rows) | _kernel_tensors(settings, prefix)


def _rival_tensors(settings: RivalSettings, prefix: str) -> dict[str, _Expected]:
    """Return what a rival may have; one that sketches a kernel has more once its budget is full."""
    rival = settings.build()
    tensors = _initial_tensors(rival.state(), prefix, ANY_LENGTH)
    if RIVALS[settings.kind] is SkeGD:
        kernel = ForksSettings.paper(rival.dimension, bounded=True, refresh=1, **dict(settings.parameters))
        tensors |= _kernel_tensors(kernel, f"{prefix}inner_kernel_")
    return tensors


def _kernel_tensors(settings: ForksSettings, prefix: str) -> dict[str, _Expected]:
    """Return the tensors of a sketched kernel."""
    rows, columns = _stored(settings), settings.kernel_columns[1] - settings.kernel_columns[0]
    s_p, s_m, k = settings.sketch_size, settings.landmarks, settings.rank
    return {
        f"{prefix}points": _Expected("F64", (rows, columns)),
        f"{prefix}serials": _Expected("I64", (rows,)),
        f"{prefix}landmarks": _Expected("I64", (s_m,)),
        f"{prefix}phi_pm": _Expected("F64", (s_p, s_m)),
        f"{prefix}phi_pp": _Expected("F64", (s_p, s_p)),
        f"{prefix}eigenvectors": _Expected("F64", (s_p, k)),
        f"{prefix}eigenvalues": _Expected("F64", (k,)),
        f"{prefix}Z": _Expected("F64", (s_m, k)),
    }


def _stored(settings: ForksSettings) -> range:
    """Return the numbers of stored points that are accepted: any where the stored set grows for ever."""
    return range(settings.budget + 1) if settings.bounded else ANY_LENGTH


def _initial_tensors(state: State, prefix: str, rows: range) -> dict[str, _Expected]:
    """Return type and shape of the arrays of a learner that has learned nothing; empty axes can grow."""
    return {
        prefix + name: _Expected(
            "F64" if value.dtype == np.float64 else "I64", tuple(length or rows for length in value.shape)
        )
        for name, value in state.items()
        if isinstance(value, np.ndarray)
    }


def check_scalars(name: str, scalars: Mapping[str, int | float]) -> None:
    """Refuse numbers that are larger than any count.

    Raises
    ------
    ValueError
        There is such a number.

    Examples
    --------
    >>> check_scalars("learner", {"updates": 10**30})
    Traceback (most recent call last):
        ...
    ValueError: learner.updates is larger than 4611686018427387904
    """
    for key, value in scalars.items():
        if isinstance(value, int) and value > MAX_NUMBER:
            raise ValueError(f"{name}.{key} is larger than {MAX_NUMBER}")


def check_rival(settings: RivalSettings, scalars: Mapping[str, int | float]) -> None:
    """Check the numbers of a rival's state.

    Raises
    ------
    ValueError
        A number is larger than any count, or more points are stored than the budget allows.
    """
    check_scalars(settings.kind, scalars)
    budget = dict(settings.parameters).get("budget", MAX_NUMBER)
    if scalars.get("inner_stored", 0) > budget:
        raise ValueError(f"{settings.kind} stores {scalars['inner_stored']} points, its budget is {budget}")


def check_learner(settings: ForksSettings, state: State) -> None:
    """Check the numbers of a learner's state, whose types and shapes fit its settings already.

    Parameters
    ----------
    settings
        Settings of the learner.
    state
        State of the learner, as `forks.Forks.from_state` accepts it.

    Raises
    ------
    ValueError
        A learner with such numbers could not go on.
    """
    stage, points = state["stage"], np.asarray(state["points"])
    if stage not in {1, 2}:
        raise ValueError(f"its stage is {stage}, not 1 or 2")
    if state["since_change"] > (state["updates"] if stage == 1 else settings.cycle):
        raise ValueError(f"since_change is {state['since_change']}, more than was learned in a cycle")
    if settings.tracking:
        _check_tracker(np.asarray(state["shares"]), np.asarray(state["phase"]))
    if stage == 1:
        return
    if len(points) < settings.budget:
        raise ValueError(f"{len(points)} points are stored, fewer than the budget of {settings.budget}")
    serials, landmarks = np.asarray(state["serials"]), np.asarray(state["landmarks"])
    if serials.min() < 0 or serials.max() > MAX_NUMBER or (np.diff(serials) <= 0).any():
        raise ValueError("the serials do not ascend")
    if landmarks.min() < 0 or landmarks.max() >= len(points) or len(set(landmarks.tolist())) < len(landmarks):
        raise ValueError(f"the landmarks are not {len(landmarks)} of the {len(points)} stored points")


def _check_tracker(shares: NDArray[np.float64], phase: NDArray[np.float64]) -> None:
    """Check the weights of the scores that tracking mixes, and its phase."""
    if not ((shares > 0.0).all() and abs(shares.sum() - 1.0) <= ROUNDING):
        raise ValueError(f"shares are {shares.tolist()}, not positive numbers with sum 1")
    if phase[0] not in {UNCHANGED, NEW, SETTLED}:
        raise ValueError(f"phase is {phase[0]}, not 0, 1 or 2")


def check_magnitude(state: State) -> None:
    """Refuse arrays with numbers with which a learner could not compute, and negative squares of the moments.

    Raises
    ------
    ValueError
        There is such a number; the text names the array.
    """
    for name, value in state.items():
        if not (np.abs(value) <= MAX_MAGNITUDE).all():  # nor is NaN
            raise ValueError(f"{name} holds a number that is not finite, or larger than {MAX_MAGNITUDE}")
    if np.asarray(state["squares"]).min(initial=0.0) < 0.0:
        raise ValueError("squares holds a negative number")


def check_sparse(state: State) -> None:
    """Check the numbers of the sparse part, whose types and shapes fit its settings already.

    Raises
    ------
    ValueError
        No labels add up to such a state.
    """
    for name in NUMBERS:
        numbers = np.asarray(state[name])
        if not (np.abs(numbers) <= MAX_MAGNITUDE).all():  # nor is NaN
            raise ValueError(f"sparse.{name} holds a number that is not finite, or above {MAX_MAGNITUDE}")
    for name in ("shares", "final_shares"):
        shares = np.asarray(state[name])
        if not ((shares > 0.0).all() and abs(shares.sum() - 1.0) <= ROUNDING):
            raise ValueError(f"sparse.{name} are {shares.tolist()}, not positive numbers with sum 1")
    if not (np.asarray(state["bias"])[:, 1] > 0.0).all():
        raise ValueError("sparse.bias has a variance that is not above 0")
    for name in ("squared_errors", "errors", "final_errors"):
        if (np.asarray(state[name]) < 0.0).any():
            raise ValueError(f"sparse.{name} holds a negative sum of squares")
    labels, _, squares = np.asarray(state["totals"]).tolist()
    if labels < 0.0 or squares < 0.0:
        raise ValueError("sparse.totals are not those of labels")


def check_totals(name: str, totals: NDArray[np.float64]) -> None:
    """Check totals, shape (n, columns): events, of which some are positive labels, sums of values and so on.

    Raises
    ------
    ValueError
        No labels add up to such totals.
    """
    sums, residuals = totals[:, :RECENT_COLUMNS], totals[:, RECENT_COLUMNS:]
    if not np.isfinite(totals).all() or sums.min(initial=0.0) < 0.0 or (sums[:, 1] > sums[:, 0]).any():
        raise ValueError(f"{name} are not totals of labels")
    if residuals.size and (np.abs(residuals[:, 0]) > MAX_RESIDUAL * sums[:, RECENT_EVENTS] + ROUNDING).any():
        raise ValueError(f"{name} have larger residuals than labels leave")


def check_effects(effects: EffectsState, users: int, items: int) -> None:
    """Check the numbers of adjusted effects of so many users and items.

    Raises
    ------
    ValueError
        No labels add up to such a state.
    """
    if len(effects.users) != users or len(effects.items) != items:
        raise ValueError(
            f"effects are of {len(effects.users)} users and {len(effects.items)} items, "
            f"totals of {users} and {items}"
        )
    for name, numbers in effects._asdict().items():
        if not (np.abs(numbers.astype(np.float64)) <= MAX_MAGNITUDE).all():  # nor is NaN
            raise ValueError(
                f"effects.{name} holds a number that is not finite, or larger than {MAX_MAGNITUDE}"
            )
    labels, noise = effects.users[:, LABELS], effects.users[:, [NOISE, SOLVED_NOISE]]
    if (labels < 0.0).any() or (labels % 1.0 != 0.0).any() or ((noise.T > 0.0) != (labels > 0.0)).any():
        raise ValueError("effects.users have numbers of labels or a noise that no labels add up to")
    precision = np.concatenate([effects.items[:, PRECISION], effects.groups[:, PRECISION]])
    if precision.min(initial=0.0) < -ROUNDING:
        raise ValueError("effects.items or effects.groups have a negative precision")
    if effects.items[:, [SQUARES, COUNT]].min(initial=0.0) < 0.0 or effects.everything[[0, 2]].min() < 0.0:
        raise ValueError("effects.items or effects.everything hold a negative count or square")
