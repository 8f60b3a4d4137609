"""Parameters of the compiled loops: the settings that every event needs, as a NumPy record."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.algorithm.kernels import precision
from forks.losses import LOSSES
from forks.settings import ForksSettings

Params: TypeAlias = NDArray[Any]
"""A (1,) array of `PARAMS_DTYPE`, whose type Numba determines faster than that of a named tuple."""

PARAMS_DTYPE = np.dtype(
    [
        ("loss", np.int64),
        ("sigma", np.float64),
        ("clip", np.float64),
        ("gamma", np.float64),
        ("used_start", np.int64),  # columns behind the entity blocks that a part sees; they have moments
        ("used_stop", np.int64),
        ("linear_features", np.int64),
        ("linear_start", np.int64),
        ("linear_stop", np.int64),
        ("kernel_start", np.int64),
        ("kernel_stop", np.int64),
        ("entity_stop", np.int64),  # end of the entity blocks
        ("offset_column", np.int64),  # -1 for none
        ("own_curvature", np.bool_),
        ("standardize", np.bool_),
        ("tracking", np.bool_),
    ],
    align=True,
)


def params_of(settings: ForksSettings) -> Params:
    """Return the parameters of the loops for these settings."""
    linear_start, linear_stop = settings.linear_columns
    kernel_start, kernel_stop = settings.kernel_columns
    varying = (settings.entity_stop, kernel_stop)
    used = (varying, settings.linear_columns)[: 1 + settings.sum_kernel]
    params = np.zeros(1, PARAMS_DTYPE)
    params["loss"] = LOSSES[settings.loss]
    params["sigma"] = settings.sigma + settings.eta
    params["clip"] = settings.clip
    params["gamma"] = precision(settings.width)
    params["used_start"] = min(start for start, _ in used)
    params["used_stop"] = max(stop for _, stop in used)
    params["linear_features"] = settings.linear_features
    params["linear_start"], params["linear_stop"] = linear_start, linear_stop
    params["kernel_start"], params["kernel_stop"] = kernel_start, kernel_stop
    params["entity_stop"] = settings.entity_stop
    params["offset_column"] = -1 if settings.offset_column is None else settings.offset_column
    params["own_curvature"] = settings.hessian == "curvature"
    params["standardize"] = settings.standardize
    params["tracking"] = settings.tracking
    return params
