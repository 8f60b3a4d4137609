"""Settings of a learner whose number of columns is known only at the first event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Literal, TypeAlias

from forks.settings import ForksSettings

PresetName: TypeAlias = Literal["practical", "paper"]

ACCEPTED = tuple(field.name for field in fields(ForksSettings) if field.name != "dimension")


def check_names(names: Iterable[str]) -> None:
    """Raise a ValueError if one of ``names`` is not a field of `ForksSettings` that may be set.

    The dimension may not be set: it follows from the first event.
    """
    for name in names:
        if name not in ACCEPTED:
            raise ValueError(f"{name} is not a setting. Accepted here: preset, {', '.join(ACCEPTED)}")


def preset_settings(
    preset: PresetName, dimension: int, changes: Mapping[str, Any], *, regression: bool
) -> ForksSettings:
    """Return the settings of ``preset`` for ``dimension`` columns, with ``changes``.

    A regressor has the squared loss, a classifier one of the others.

    Raises
    ------
    ValueError
        The preset or a field is not accepted; the message names it.

    Examples
    --------
    >>> preset_settings("paper", 3, {"width": 2.0}, regression=False) == ForksSettings.paper(3, width=2.0)
    True
    >>> preset_settings("practical", 3, {}, regression=True).loss
    'squared'
    """
    presets = {"practical": ForksSettings.practical, "paper": ForksSettings.paper}
    if preset not in presets:
        raise ValueError(f"preset = {preset!r} is not accepted: it must be one of {', '.join(presets)}")
    check_names(changes)
    defaults = {"loss": "squared"} if regression else {}
    settings = presets[preset](dimension, **(defaults | dict(changes)))
    if (settings.loss == "squared") != regression:
        kind = "a regressor" if regression else "a classifier"
        raise ValueError(f"loss = {settings.loss!r} is not accepted: it is not the loss of {kind}")
    return settings
