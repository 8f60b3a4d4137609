"""Run programs, and show what they wrote if they fail."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

LAST_LINES: Final = 40


class TrialError(Exception):
    """The trial cannot be made, or something was not as it should be; the message says what."""


def run(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    timeout: float = 600.0,
) -> str:
    """Run a program to its end.

    Parameters
    ----------
    command
        The program and its arguments.
    environment
        Variables in addition to those of this process.
    folder
        The folder to run it in.
    timeout
        Seconds that it may take.

    Returns
    -------
    str
        What it wrote to standard output.

    Raises
    ------
    TrialError
        It failed, or took too long.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            env=os.environ | dict(environment or {}),
            cwd=folder,
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TrialError(f"{' '.join(words)} took more than {timeout:g} s") from error
    if done.returncode:
        end = "\n".join((done.stdout + done.stderr).splitlines()[-LAST_LINES:])
        raise TrialError(f"{' '.join(words)} ended with {done.returncode}:\n{end}")
    return done.stdout
