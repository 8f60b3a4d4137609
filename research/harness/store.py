"""Results of trials in a file of JSON lines, each written as soon as it is known."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from research.harness.trials import Result, Trial


class StoreError(Exception):
    """The file holds something other than results, or another process has it open."""


class Store:
    """Known results of trials, by the trials' keys.

    A context manager; while it is entered, no other process can enter a store of the same file.

    Parameters
    ----------
    path
        File of the results, created if it does not exist.

    Attributes
    ----------
    dropped
        Whether the file ended in the middle of a line, which was then removed.

    Raises
    ------
    StoreError
        By `__enter__`: the file holds something other than results, or another process has it open.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dropped = False
        self._results: dict[str, Result] = {}
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        self._file = self.path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._load(self._file)
        except BlockingIOError as error:
            self._file.close()
            raise StoreError(
                f"{self.path}: another process is writing results to this file; wait for it or stop it"
            ) from error
        except StoreError:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def get(self, trial: Trial) -> Result | None:
        """Return the result of a trial, or None if it is not known."""
        return self._results.get(_text(trial.key()))

    def add(self, trial: Trial, result: Result) -> None:
        """Write a result to the file; when this returns, the result survives a kill of the process."""
        if self._file is None:
            raise ValueError("the store must be entered as a context manager before results are added")
        key = _text(trial.key())
        self._file.write(f'{{"cell": {key}, "result": {_text(result)}}}\n'.encode())
        self._file.flush()
        self._results[key] = result

    def _load(self, file: IO[bytes]) -> None:
        file.seek(0)
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            self.dropped = True
            file.truncate(whole)
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                entry = json.loads(line)
                self._results[_text(entry["cell"])] = {name: float(x) for name, x in entry["result"].items()}
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise StoreError(
                    f"{self.path}, line {number}: not a result; move the file to another folder"
                ) from error


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)
