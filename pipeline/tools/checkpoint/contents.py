"""Summarise what a snapshot holds, given its bytes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.config.settings import Learner
from pipeline.config.stream import KUAIREC, Stream
from pipeline.errors import StateError
from pipeline.features.feature_set import KUAIREC_FEATURES, FeatureSet
from pipeline.model.contexts import ContextLayout
from pipeline.model.learner_settings import learner_settings
from pipeline.model.settings_text import CHALLENGERS_PREFIX, KIND, kind_from
from pipeline.model.snapshot import Tensors, parse, table_keys

PRESETS: Final = ("practical", "paper")


class Array(msgspec.Struct, frozen=True):
    """An array's shape and its Euclidean (for a matrix: Frobenius) norm."""

    shape: list[int]
    norm: float


class Challenger(msgspec.Struct, frozen=True):
    """A challenger of the snapshot's model."""

    name: str
    learner: str
    """Kind of the learner: FORKS or a rival."""
    bytes: int
    """Size of its arrays."""


class Contents(msgspec.Struct, frozen=True):
    """The model of a snapshot in figures."""

    outcomes: int
    """Outcomes that it has learned."""
    bytes: int
    preset: str
    """Preset from which the fewest settings differ."""
    changes: dict[str, str]
    """Settings that differ from the preset."""
    updates: int
    """Training examples that the learner has learned."""
    stage: int
    """1 until the budget is full, then 2."""
    map_changes: int
    """Changes of the feature map so far."""
    points: Array
    """Stored points, shape (n, columns)."""
    sketch: dict[str, Array]
    """Phi_pp, Phi_pm and the feature map Z that is made of them; empty in stage 1."""
    singular_values: list[float]
    """Singular values of Phi_pp, as TISVD keeps them, largest first."""
    weights: Array
    inverse_hessian: Array
    smallest_eigenvalue: float
    """Smallest eigenvalue of the inverse Hessian, which has to be positive."""
    largest_eigenvalue: float
    """Largest eigenvalue of the inverse Hessian."""
    kept: dict[str, int]
    """Entities with running statistics by table, and tags."""
    challengers: list[Challenger]


def contents(data: bytes, settings: dict[str, Any], stream: Stream = KUAIREC) -> Contents:
    """Summarise a snapshot.

    Parameters
    ----------
    data
        Bytes of the snapshot.
    settings
        Settings of the state record that refers to it, as text by name.
    stream
        Definition of the stream.

    Returns
    -------
    Contents
        Figures of the model.

    Raises
    ------
    StateError
        If the bytes are no snapshot of this version.
    """
    tensors, plain = parse(data)
    features = FeatureSet.of(stream, kind_from(settings))
    preset, changes = nearest_preset(settings, features)
    try:
        inverse_hessian = tensors["learner.inverse_hessian"]
        eigenvalues = np.linalg.eigvalsh(inverse_hessian)
        return Contents(
            outcomes=plain.outcomes_learned,
            bytes=len(data),
            preset=preset,
            changes=changes,
            updates=int(plain.learner["updates"]),
            stage=int(plain.learner["stage"]),
            map_changes=int(plain.learner.get("changes", 0)),
            points=_array(tensors["learner.points"]),
            sketch={
                name: _array(tensors[f"learner.{name}"])
                for name in ("phi_pp", "phi_pm", "Z")
                if f"learner.{name}" in tensors
            },
            singular_values=_singular_values(tensors),
            weights=_array(tensors["learner.weights"]),
            inverse_hessian=_array(inverse_hessian),
            smallest_eigenvalue=float(eigenvalues[0]),
            largest_eigenvalue=float(eigenvalues[-1]),
            kept={
                **{table.name: len(table_keys(tensors, table)) for table in features.layout.tables},
                "tags": len(tensors["tags.totals"]),
            },
            challengers=[_challenger(name, tensors, settings) for name in plain.challengers or ()],
        )
    except (LookupError, ValueError, np.linalg.LinAlgError) as error:
        raise StateError(f"the snapshot is damaged: {error!r}") from error


def nearest_preset(
    settings: dict[str, Any], features: FeatureSet = KUAIREC_FEATURES
) -> tuple[str, dict[str, str]]:
    """Return the preset from which the fewest settings of a state record differ, and these settings."""
    prefix = "learner."
    found = {name.removeprefix(prefix): text for name, text in settings.items() if name.startswith(prefix)}
    differences = {}
    for preset in PRESETS:
        defaults = asdict(
            learner_settings(
                Learner.model_validate({"preset": preset}),
                int(found["dimension"]) - ContextLayout.of(0, features).own_columns,
                features=features,
            )
        )
        differences[preset] = {name: text for name, text in found.items() if text != str(defaults[name])}
    nearest = min(PRESETS, key=lambda preset: len(differences[preset]))
    return nearest, differences[nearest]


def _challenger(name: str, tensors: Tensors, settings: dict[str, Any]) -> Challenger:
    prefix = f"{CHALLENGERS_PREFIX}{name}."
    sizes = [array.nbytes for tensor, array in tensors.items() if tensor.startswith(prefix)]
    return Challenger(name, settings[prefix + KIND], sum(sizes))


def _array(array: NDArray[Any]) -> Array:
    return Array(list(array.shape), float(np.linalg.norm(array)))


def _singular_values(tensors: Tensors) -> list[float]:
    values: list[float] = np.abs(tensors.get("learner.eigenvalues", np.empty(0))).tolist()
    return values
