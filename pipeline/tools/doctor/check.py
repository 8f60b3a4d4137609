"""The result of a check."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Status: TypeAlias = Literal["ok", "warning", "failed", "skipped"]


class Check(msgspec.Struct, frozen=True):
    """What a check has found."""

    name: str
    status: Status
    """`failed` if no worker can run so; `skipped` if it could not be checked."""
    found: str
    remedy: str = ""
    """What to do; empty if there is nothing to do."""


def worst(checks: list[Check], name: str, found: str) -> Check:
    """Make one check of several findings of the same name; `found` describes that there are none.

    Examples
    --------
    >>> worst([Check("disk", "warning", "a", "b"), Check("disk", "failed", "c", "d")], "disk", "fine")
    Check(name='disk', status='failed', found='a; c', remedy='b; d')
    >>> worst([], "disk", "fine").status
    'ok'
    """
    if not checks:
        return Check(name, "ok", found)
    status: Status = "failed" if any(check.status == "failed" for check in checks) else "warning"
    remedies = dict.fromkeys(check.remedy for check in checks if check.remedy)
    return Check(name, status, "; ".join(check.found for check in checks), "; ".join(remedies))
