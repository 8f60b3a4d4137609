"""Whether the layout of the client's objects is known, which compiled code reads."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Final

KNOWN_CLIENTS: Final = ("2.16.",)
"""The versions of confluent-kafka whose objects' fields are where compiled code looks for them."""


def layout_known() -> bool:
    """Return whether the installed client is one of them, on a processor with that order of bytes."""
    return version("confluent-kafka").startswith(KNOWN_CLIENTS) and sys.byteorder == "little"
