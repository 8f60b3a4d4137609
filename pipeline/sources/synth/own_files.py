"""Which files of a folder are as `forks synth` wrote them, so that it never replaces anybody else's."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

FOLDER: Final = ".forks-synth"
"""Folder beside the files: it has the digests of what was written, and what is not yet finished."""


class OwnFiles:
    """The files that one command after another writes into a folder.

    The digest of a file is noted before the file takes its place. So a run that is killed leaves no file that
    a later one takes for another's.

    Parameters
    ----------
    folder
        The folder. It is created when something is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._work = folder / FOLDER
        self._digests = self._work / "digests"

    def present(self, names: Iterable[str]) -> list[str]:
        """Return which of these names the folder has."""
        return [name for name in names if os.path.lexists(self._folder / name)]

    def foreign(self, names: Iterable[str]) -> list[str]:
        """Return which of these names the folder has with contents that were not written here."""
        present = self.present(names)
        known = set(self._digests.read_text("utf-8").split()) if present and self._digests.exists() else set()
        return [name for name in present if self._digest(self._folder / name) not in known]

    def write(self, name: str, write: Callable[[Path], object]) -> None:
        """Write a file, and put it in its place when it is whole.

        Parameters
        ----------
        name
            Name of the file.
        write
            Writes the contents to a path.
        """
        self._work.mkdir(parents=True, exist_ok=True)
        unfinished = self._work / name
        write(unfinished)
        with self._digests.open("a", encoding="utf-8") as digests:
            digests.write(f"{self._digest(unfinished)}\n")
        unfinished.replace(self._folder / name)

    @staticmethod
    def _digest(path: Path) -> str:
        if not path.is_file():
            return ""
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
