"""Settings of a learner whose number of columns is known only when the first event comes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Literal, TypeAlias

from forks.settings import ForksSettings

PresetName: TypeAlias = Literal["practical", "paper"]

ACCEPTED = tuple(field.name for field in fields(ForksSettings) if field.name != "dimension")


def check_names(names: Iterable[str]) -> None:
    """Raise a ValueError if one of ``names`` is no field of `ForksSettings` that may be set.

    The dimension may not: the first event decides it.
    """
    for name in names:
        if name not in ACCEPTED:
            raise ValueError(f"{name} is not a setting. Accepted here: preset, {', '.join(ACCEPTED)}")


def preset_settings(preset: PresetName, dimension: int, changes: Mapping[str, Any]) -> ForksSettings:
    """Return the settings of ``preset`` for ``dimension`` columns, with ``changes``.

    Raises
    ------
    ValueError
        The preset or a field is not accepted; the text names it.

    Examples
    --------
    >>> preset_settings("paper", 3, {"width": 2.0}) == ForksSettings.paper(3, width=2.0)
    True
    """
    presets = {"practical": ForksSettings.practical, "paper": ForksSettings.paper}
    if preset not in presets:
        raise ValueError(f"preset = {preset!r} is not accepted: it must be one of {', '.join(presets)}")
    check_names(changes)
    return presets[preset](dimension, **changes)
