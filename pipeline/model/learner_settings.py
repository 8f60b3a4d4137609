"""The learner's settings, from the configuration's preset and overrides."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Final, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from forks import ForksSettings, LossName
from pipeline.config.settings import Learner
from pipeline.errors import ConfigError
from pipeline.features.binary import TARGET
from pipeline.features.feature_set import KUAIREC_FEATURES, FeatureSet
from pipeline.model.contexts import ContextLayout
from pipeline.truncate import shown

LINEAR_ALPHA: Final = 30.0
"""Prior precision of the linear part beside the log-odds of the effects, chosen on KuaiRec."""
REGRESSION_ALPHA: Final = 30.0
"""Prior precision of all weights where numbers are predicted, chosen on invented deliveries: squared loss has
eight times the curvature of logistic loss, and labels are no more certain."""
SPARSE_REGRESSION_ALPHA: Final = 1.0
"""The same beside a sparse part, from whose scores the learner starts: see docs/measurements.md."""

CHAMPION_SECTION: Final = "learner"
"""The section of the configuration that is not a challenger's."""
NEAR: Final = 0.7
"""How near the name of a setting has to be to one that there is not, from 0 to 1, for an error to name it."""


def learner_settings(
    learner: Learner,
    static_columns: int,
    where: str = CHAMPION_SECTION,
    *,
    features: FeatureSet = KUAIREC_FEATURES,
    losses: tuple[LossName, ...] = TARGET.losses,
) -> ForksSettings:
    """Return the learner's settings for a context vector of static columns and a stream's features.

    The `paper` preset uses all columns. `practical` uses the features alone, since KuaiRec's static columns
    do not make its predictions better, and categories in its linear part only. With effects it adds to the
    log-odds that they come to, where its loss is logistic, and with categories that have no columns to the
    mixture of the sparse part's scores. With KuaiRec's features of the kind `running`,
    which groups from before there was tracking have, it does not track changes.

    Parameters
    ----------
    learner
        The preset and the overrides.
    static_columns
        Columns of the context vector before the features.
    where
        The section of the configuration, for errors.
    features
        Which features there are.
    losses
        The losses that suit the target, of which the first is the default.

    Raises
    ------
    ConfigError
        A setting is unknown or its value is refused. The message names the setting and what is accepted.
    """
    layout = ContextLayout.of(static_columns, features)
    dimension = layout.dimension
    loss = learner.overrides.get("loss", losses[0])
    if loss in get_args(LossName) and loss not in losses:
        raise ConfigError(f"{where}.loss: this target is learned with the loss {losses[0]}, not {loss}")
    if features.layout.sparse is not None and loss != losses[0] and where == CHAMPION_SECTION:
        raise ConfigError(
            f"{where}.loss: a stream with categories that have no columns is learned with the loss "
            f"{losses[0]}, whose scores can be mixed; give each category columns to learn with {loss}"
        )
    first_point = layout.first_running if layout.first_running < dimension else static_columns
    blocks: dict[str, Any] = {}
    if losses != TARGET.losses:
        alpha = REGRESSION_ALPHA if features.layout.sparse is None else SPARSE_REGRESSION_ALPHA
        blocks |= {"loss": losses[0], "alpha": alpha}
    if learner.preset == "practical":
        blocks |= {
            "linear_columns": (static_columns, dimension),
            "kernel_columns": (first_point, dimension),
        }
        offset = features.offset_column
        if features.kind == "running" and not features.declared:
            blocks["tracking"] = False
        elif offset is not None and loss == ("logistic" if features.layout.sparse is None else losses[0]):
            blocks |= {"offset_column": layout.first_running + offset, "linear_alpha": LINEAR_ALPHA}
    return preset_settings(learner, dimension, where, **blocks)


def preset_settings(
    learner: Learner, dimension: int, where: str = "learner", **defaults: Any
) -> ForksSettings:
    """Return the preset's settings, replaced by `defaults` and those by the overrides.

    Parameters
    ----------
    learner
        The preset and the overrides.
    dimension
        Columns of the vectors that are learned.
    where
        The section of the configuration, for errors.
    **defaults
        Settings that replace those of the preset.

    Raises
    ------
    ConfigError
        A setting is unknown or its value is refused. The message names the setting and what is accepted.
    """
    preset = ForksSettings.paper if learner.preset == "paper" else ForksSettings.practical
    types = get_type_hints(ForksSettings)
    del types["dimension"]
    changes = {
        name: checked_setting(where, name, value, types, "preset")
        for name, value in learner.overrides.items()
    }
    try:
        return preset(dimension, **(defaults | changes))
    except ValueError as error:
        raise ConfigError(f"{where}.{error}") from error


def checked_setting(where: str, name: str, value: object, types: Mapping[str, Any], *others: str) -> Any:
    """Return a setting's value, converted to its type.

    Parameters
    ----------
    where
        The section of the configuration, for errors.
    name, value
        The setting as it was given.
    types
        The types of the accepted settings, by name.
    *others
        Further names that the section accepts, for errors.

    Raises
    ------
    ConfigError
        The setting is unknown or its value is refused. The message names the setting and what is accepted.
    """
    if name not in types:
        names = [*others, *sorted(types)]
        near = difflib.get_close_matches(name, names, n=1, cutoff=NEAR)
        hint = f"; did you mean {where}.{near[0]}?" if near else "."
        raise ConfigError(f"{where}.{name} is not a setting{hint} Accepted here: {', '.join(names)}")
    try:
        return TypeAdapter(types[name]).validate_python(value)
    except ValidationError as error:
        raise ConfigError(f"{where}.{name}: {error.errors()[0]['msg']} (got {shown(value)})") from error
