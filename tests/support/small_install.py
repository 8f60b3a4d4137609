"""Run `forks` as if no extra were installed."""

from __future__ import annotations

import sys

from pipeline.extras import EXTRA_OF_PACKAGE

PROGRAM = f"""
import sys
sys.modules.update(dict.fromkeys({sorted(EXTRA_OF_PACKAGE)}))  # with None, an import fails
from pipeline.cli import main
main()
"""


def forks_without_extras(*arguments: str) -> list[str]:
    """The command line of `forks` without the packages of any extra."""
    return [sys.executable, "-c", PROGRAM, *arguments]
