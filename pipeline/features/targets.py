"""The target that settings describe."""

from __future__ import annotations

from pipeline.config.target_settings import BinarySettings, TargetSettings
from pipeline.features.binary import BinaryTarget
from pipeline.features.regression import RegressionTarget
from pipeline.features.target import Target


def target_of(settings: TargetSettings) -> Target:
    """Return the target of the settings.

    Examples
    --------
    >>> from pipeline.config.stream import KUAIREC
    >>> target_of(KUAIREC.target)
    BinaryTarget(threshold=0.75, cap=2.0, scale=0.75)
    """
    if isinstance(settings, BinarySettings):
        return BinaryTarget.of(settings)
    return RegressionTarget.of(settings)
