"""The kernel of stage 2: sketch, decomposition and feature map, which change together."""

from __future__ import annotations

from typing import Self

import numpy as np

from forks.algorithm.feature_map import FeatureMap, build_map, map_points
from forks.algorithm.kernels import precision
from forks.algorithm.sjlt import Sjlt
from forks.algorithm.sketch import KernelSketch
from forks.algorithm.tisvd import Factors, tisvd, truncated_svd
from forks.arrays import FloatArray
from forks.settings import ForksSettings
from forks.state import State, StateReader


class SketchedKernel:
    """Kernel of stage 2: each change adds a point and makes a new feature map.

    Parameters
    ----------
    settings
        Settings of the learner.
    sketch
        Sketch of the kernel matrix of the stored points.
    factors
        Truncated decomposition of Phi_pp.
    feature_map
        Feature map made from both.
    changes
        Number of changes of the map.
    """

    def __init__(
        self,
        settings: ForksSettings,
        sketch: KernelSketch,
        factors: Factors,
        feature_map: FeatureMap,
        changes: int,
    ) -> None:
        self._settings = settings
        self._sketch = sketch
        self._factors = factors
        self._changes = changes
        self._features: FloatArray | None = None
        self.feature_map = feature_map

    @classmethod
    def of(cls, points: FloatArray, settings: ForksSettings) -> Self:
        """Return the kernel for the points, (budget, columns), that stage 1 stored."""
        sketch = KernelSketch.of(points, settings.landmarks, sjlt=_sjlt(settings), gamma=_gamma(settings))
        factors = truncated_svd(sketch.phi_pp, settings.rank)
        return cls(settings, sketch, factors, build_map(sketch, factors), 0)

    @property
    def points(self) -> FloatArray:
        """The stored points, the oldest first, (n, columns)."""
        return self._sketch.points

    @property
    def stored(self) -> int:
        """Number of stored points."""
        return len(self._sketch.points)

    @property
    def eigenvalues(self) -> FloatArray:
        """The eigenvalues of the decomposition, (k,)."""
        return self._factors.values

    @property
    def changes(self) -> int:
        """Number of changes of the map."""
        return self._changes

    @property
    def changes_since_refresh(self) -> int:
        """Number of changes since the decomposition was computed anew from the sketch."""
        refresh = self._settings.refresh
        return self._changes % refresh if refresh else self._changes

    def features(self) -> FloatArray:
        """Return the features of the stored points, (n, k)."""
        if self._features is None:
            self._features = self._mapped(self._sketch.points)
        return self._features

    def features_with(self, point: FloatArray) -> FloatArray:
        """Return the features, (n, k), under the current map, of the points stored after `change`."""
        kept = self.features()[1:] if self._settings.bounded else self.features()
        return np.concatenate([kept, self._mapped(point[None])])

    def change(self, point: FloatArray) -> None:
        """Store ``point``, (columns,), and change the map; if bounded, evict the oldest point first."""
        self._changes += 1
        self._features = None
        modifications = [self._sketch.evict(0)] if self._settings.bounded else []
        modifications.append(self._sketch.insert(point))
        if self._settings.refresh and self._changes % self._settings.refresh == 0:
            self._factors = truncated_svd(self._sketch.phi_pp, self._settings.rank)
        else:
            A, B = (np.concatenate(sides, axis=1) for sides in zip(*modifications, strict=True))
            self._factors = tisvd(self._factors, A, B)
        self.feature_map = build_map(self._sketch, self._factors)

    def _mapped(self, points: FloatArray) -> FloatArray:
        return map_points(points, self.feature_map, _gamma(self._settings))

    def state(self) -> State:
        """Return the entries of `forks.Forks.state` for the kernel."""
        return {
            "changes": self._changes,
            "points": self._sketch.points.copy(),
            "serials": self._sketch.serials.copy(),
            "landmarks": self._sketch.landmarks.copy(),
            "phi_pm": self._sketch.phi_pm.copy(),
            "phi_pp": self._sketch.phi_pp.copy(),
            "eigenvectors": self._factors.vectors.copy(),
            "eigenvalues": self._factors.values.copy(),
            "Z": self.feature_map.Z.copy(),
        }

    @classmethod
    def from_state(cls, settings: ForksSettings, reader: StateReader) -> Self:
        """Return a kernel restored from `state`."""
        s_p, s_m, k = settings.sketch_size, settings.landmarks, settings.rank
        points = reader.floats("points", None, settings.kernel_columns[1] - settings.kernel_columns[0])
        sketch = KernelSketch(
            points,
            reader.integers("serials", len(points)),
            reader.integers("landmarks", s_m),
            reader.floats("phi_pm", s_p, s_m),
            reader.floats("phi_pp", s_p, s_p),
            sjlt=_sjlt(settings),
            gamma=_gamma(settings),
        )
        factors = Factors(reader.floats("eigenvectors", s_p, k), reader.floats("eigenvalues", k))
        feature_map = FeatureMap(np.ascontiguousarray(sketch.landmark_points.T), reader.floats("Z", s_m, k))
        return cls(settings, sketch, factors, feature_map, reader.integer("changes"))


def _sjlt(settings: ForksSettings) -> Sjlt:
    return Sjlt(settings.sketch_size, settings.blocks, settings.seed)


def _gamma(settings: ForksSettings) -> float:
    return precision(settings.width)
