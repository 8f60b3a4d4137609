"""Results that the papers print: mean and standard deviation of mistakes in percent, and seconds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias


class Printed(NamedTuple):
    """A printed result of one learner on one stream.

    Attributes
    ----------
    mean, deviation
        Mean and standard deviation of mistakes in percent, over the paper's runs.
    seconds
        Seconds on the paper's machine.
    """

    mean: float
    deviation: float
    seconds: float


PrintedResults: TypeAlias = Mapping[str, Mapping[str, Printed]]
"""Printed results by stream and learner."""


def _table(
    streams: tuple[str, ...], rows: Mapping[str, tuple[tuple[float, float, float], ...]]
) -> PrintedResults:
    return MappingProxyType(
        {
            stream: MappingProxyType({name: Printed(*figures[column]) for name, figures in rows.items()})
            for column, stream in enumerate(streams)
        }
    )


TABLE_2: PrintedResults = _table(
    ("german", "svmguide3", "spambase", "cod-rna", "w7a", "ijcnn1"),
    {
        "RBP": (
            (38.83, 0.152, 0.003),
            (29.698, 1.644, 0.003),
            (35.461, 0.842, 0.025),
            (22.644, 0.262, 0.21),
            (5.963, 0.722, 0.945),
            (21.024, 0.578, 0.633),
        ),
        "BPA-S": (
            (35.235, 0.944, 0.004),
            (29.027, 0.732, 0.004),
            (34.394, 2.545, 0.039),
            (17.029, 0.303, 0.313),
            (3.001, 0.045, 1.145),
            (11.114, 0.064, 0.747),
        ),
        "Projectron": (
            (36.875, 1.403, 0.003),
            (25.06, 0.373, 0.003),
            (32.659, 0.914, 0.031),
            (19.257, 4.688, 0.341),
            (3.174, 0.014, 0.965),
            (9.478, 0.001, 0.621),
        ),
        "BOGD": (
            (33.705, 1.446, 0.007),
            (29.904, 1.653, 0.006),
            (32.859, 0.478, 0.049),
            (17.305, 0.146, 0.507),
            (3.548, 0.164, 0.97),
            (11.559, 0.174, 0.724),
        ),
        "FOGD": (
            (30.915, 0.845, 0.025),
            (30.024, 0.787, 0.022),
            (25.651, 0.349, 0.175),
            (13.103, 0.105, 1.48),
            (2.893, 0.053, 2.548),
            (9.674, 0.105, 3.125),
        ),
        "NOGD": (
            (26.715, 0.552, 0.014),
            (19.964, 0.077, 0.008),
            (31.003, 0.751, 0.077),
            (17.915, 3.315, 0.869),
            (2.579, 0.007, 2.004),
            (9.379, 0.001, 1.457),
        ),
        "SkeGD": (
            (25.17, 0.391, 0.009),
            (19.976, 0.105, 0.007),
            (32.413, 1.886, 0.067),
            (13.274, 0.262, 0.779),
            (2.706, 0.335, 2.093),
            (11.898, 1.44, 2.216),
        ),
        "PROS-N-KONS": (
            (31.235, 0.939, 1.017),
            (24.529, 0.561, 0.015),
            (32.227, 0.678, 6.638),
            (13.387, 0.289, 114.983),
            (3.016, 0.007, 92.377),
            (9.455, 0.001, 5.0),
        ),
        "FORKS": (
            (26.425, 0.562, 0.008),
            (19.71, 0.557, 0.009),
            (30.662, 0.67, 0.07),
            (12.795, 0.36, 0.918),
            (2.561, 0.038, 2.24),
            (9.381, 0.001, 2.48),
        ),
    },
)
"""FORKS, Table 2."""

TABLE_3: PrintedResults = _table(
    ("cod-rna-1", "german-1"),
    {
        "BOGD": (
            (26.066, 1.435, 0.029),
            (32.131, 1.079, 0.042),
        ),
        "NOGD": (
            (29.78, 1.257, 0.024),
            (28.103, 1.247, 0.04),
        ),
        "SkeGD, theta = 0.005": (
            (24.649, 5.087, 0.269),
            (11.026, 4.018, 0.113),
        ),
        "PROS-N-KONS": (
            (21.299, 1.364, 3.323),
            (17.174, 1.437, 0.477),
        ),
        "FORKS": (
            (6.752, 1.647, 0.023),
            (5.142, 0.215, 0.035),
        ),
    },
)
"""FORKS, Table 3."""

TABLE_4: PrintedResults = _table(
    ("cod-rna-2", "german-2"),
    {
        "BOGD": (
            (14.745, 0.063, 0.043),
            (21.29, 0.918, 0.06),
        ),
        "NOGD": (
            (19.977, 1.536, 0.041),
            (16.527, 0.81, 0.056),
        ),
        "SkeGD, theta = 0.005": (
            (15.829, 2.583, 0.203),
            (5.742, 2.647, 0.077),
        ),
        "PROS-N-KONS": (
            (15.43, 2.315, 20.612),
            (11.187, 1.782, 1.144),
        ),
        "FORKS": (
            (4.127, 0.769, 0.039),
            (2.96, 0.185, 0.05),
        ),
    },
)
"""FORKS, Table 4."""

SKEGD_TABLE_1: PrintedResults = _table(
    ("spambase-1", "spambase-2"),
    {
        "FOGD": (
            (39.793, 0.14, 0.235),
            (29.257, 0.186, 0.478),
        ),
        "NOGD": (
            (44.714, 0.001, 0.468),
            (40.586, 0.002, 0.938),
        ),
        "PROS-N-KONS": (
            (35.953, 0.423, 265.26),
            (26.8, 0.802, 696.39),
        ),
        "SkeGD, theta = 0.1": (
            (29.034, 1.584, 0.344),
            (16.879, 3.779, 0.646),
        ),
        "SkeGD, theta = 0.01": (
            (25.367, 1.134, 0.494),
            (14.7, 0.338, 0.743),
        ),
        "SkeGD, theta = 0.005": (
            (25.17, 0.847, 0.682),
            (14.733, 2.562, 0.848),
        ),
        "SkeGD, theta = 0.001": (
            (25.626, 0.966, 2.337),
            (14.845, 1.766, 2.89),
        ),
    },
)
"""SkeGD, supplement, Table 1."""
