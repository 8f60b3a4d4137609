"""The settings that every event needs, in the form that compiled code takes."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.algorithm.kernels import precision
from forks.losses import LOSSES
from forks.settings import ForksSettings

Rule: TypeAlias = NDArray[Any]
"""A (1,) array of `RULE`: Numba tells its type faster than that of a tuple with names."""

RULE = np.dtype(
    [
        ("loss", np.int64),
        ("sigma", np.float64),
        ("clip", np.float64),
        ("gamma", np.float64),
        ("used_start", np.int64),  # the columns that parts see one by one, and that moments are kept of
        ("used_stop", np.int64),
        ("linear_features", np.int64),
        ("linear_start", np.int64),
        ("linear_stop", np.int64),
        ("kernel_start", np.int64),
        ("kernel_stop", np.int64),
        ("entity_stop", np.int64),  # entity blocks are the kernel's columns up to here
        ("own_curvature", np.bool_),
        ("standardize", np.bool_),
    ],
    align=True,
)


def rule_of(settings: ForksSettings) -> Rule:
    """Return what of the settings the loops need."""
    linear_start, linear_stop = settings.linear_columns
    kernel_start, kernel_stop = settings.kernel_columns
    varying = (settings.entity_stop, kernel_stop)
    used = (varying, settings.linear_columns)[: 1 + settings.sum_kernel]
    rule = np.zeros(1, RULE)
    rule["loss"] = LOSSES[settings.loss]
    rule["sigma"] = settings.sigma + settings.eta
    rule["clip"] = settings.clip
    rule["gamma"] = precision(settings.width)
    rule["used_start"] = min(start for start, _ in used)
    rule["used_stop"] = max(stop for _, stop in used)
    rule["linear_features"] = settings.linear_features
    rule["linear_start"], rule["linear_stop"] = linear_start, linear_stop
    rule["kernel_start"], rule["kernel_stop"] = kernel_start, kernel_stop
    rule["entity_stop"] = settings.entity_stop
    rule["own_curvature"] = settings.hessian == "curvature"
    rule["standardize"] = settings.standardize
    return rule
