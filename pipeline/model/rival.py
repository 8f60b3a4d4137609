"""The rivals that a challenger may be, and their parameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, get_type_hints

import numpy as np

from forks import ForksSettings, LossName, rivals
from forks.rivals.base.learner import VectorRival
from forks.rivals.skegd import SETTINGS as SKEGD_SETTINGS
from pipeline.records.fields import FEATURES_LENGTH

RIVALS: Final[Mapping[str, type[VectorRival]]] = MappingProxyType(
    {
        kind.__name__.lower(): kind
        for kind in (
            rivals.AROW,
            rivals.BOGD,
            rivals.BPAS,
            rivals.FOGD,
            rivals.Forgetron,
            rivals.FourierNewton,
            rivals.NOGD,
            rivals.OGD,
            rivals.Perceptron,
            rivals.Projectron,
            rivals.ProjectronPlus,
            rivals.RBP,
            rivals.SCW,
            rivals.SkeGD,
        )
    }
)
"""Rivals by their names in a configuration, without those whose cost grows fast with the stream."""


@dataclass(frozen=True)
class RivalSettings:
    """A rival that learns from the standardised features, and its parameters.

    Attributes
    ----------
    kind
        The rival's name in `RIVALS`.
    parameters
        Pairs of name and value, in the order of names; parameters that are left out have their defaults.
    dimension
        Columns of the features.
    """

    kind: str
    parameters: tuple[tuple[str, Any], ...]
    dimension: int = FEATURES_LENGTH

    @classmethod
    def of(cls, kind: str, parameters: Mapping[str, Any], dimension: int = FEATURES_LENGTH) -> RivalSettings:
        """Return settings that name every parameter, so that a changed default is a changed setting.

        Raises
        ------
        ValueError
            A parameter is refused. The message names it.
        """
        settings = cls(kind, tuple(sorted((_defaults(kind) | dict(parameters)).items())), dimension)
        settings.build()
        return settings

    @property
    def loss(self) -> LossName:
        """The loss that it minimises."""
        loss: LossName = dict(self.parameters).get("loss", RIVALS[self.kind].loss)
        return loss

    def build(self) -> rivals.Standardised:
        """Return a rival that has learned nothing."""
        build: Any = RIVALS[self.kind]
        return rivals.Standardised(build(self.dimension, **dict(self.parameters)))

    def warm_up(self) -> None:
        """Compile what it calls, through all its stages. This is quick where it was done before."""
        parameters = dict(self.parameters)
        events = 2 * parameters.get("budget", 20) + parameters.get("cycle", 0)
        rng = np.random.default_rng(0)
        labels = np.where(rng.random(events) < 0.5, -1.0, 1.0)
        learner = self.build()
        weights = None if learner.no_weights else np.where(labels > 0.0, 1.0, 2.0)
        learner.learn_many(rng.normal(size=(events, self.dimension)), labels, weights)


def parameter_types(kind: str) -> dict[str, Any]:
    """Return the types of a rival's parameters by name.

    Examples
    --------
    >>> parameter_types("nogd")["budget"], parameter_types("skegd")["cycle"]
    (<class 'int'>, <class 'int'>)
    """
    hints = get_type_hints(RIVALS[kind].__init__)
    types = {name: hints[name] for name in _defaults(kind)}
    if RIVALS[kind] is rivals.SkeGD:
        learner = get_type_hints(ForksSettings)
        types |= {name: learner[name] for name in SKEGD_SETTINGS}
    return types


def _defaults(kind: str) -> dict[str, Any]:
    parameters = inspect.signature(RIVALS[kind]).parameters.values()
    return {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}
