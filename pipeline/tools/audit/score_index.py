"""Index the lines of followers' logs by partition and model version, so that few are in memory at a time."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from pipeline.serving.score_log import ScoreLogLine, read_line, read_score_log

DAMAGED: Final = "lines that cannot be read, as the half of one at the end of a file"
NO_PARTITION: Final = "lines of partitions that do not exist"
UNREADABLE: Final = (DAMAGED, NO_PARTITION)


class IndexedLine(NamedTuple):
    """A line of a log."""

    file: Path
    number: int
    """From 1."""
    line: ScoreLogLine


class ScoreIndex:
    """The lines of a follower's log, by partition, in the order in which they can be derived.

    Parameters
    ----------
    path
        The file that was named to the follower; rotated files beside it are read, too.
    partitions
        Number of partitions of the topics.

    Attributes
    ----------
    unreadable
        Number of lines that cannot be checked, by the reason.
    first
        The first of them: file, line, and what is wrong.

    Raises
    ------
    DataError
        A file cannot be read.
    """

    def __init__(self, path: Path, partitions: int) -> None:
        self.unreadable: Counter[str] = Counter()
        self.first: str | None = None
        self._files: list[Path] = []
        self._columns = [tuple(array("q") for _ in range(5)) for _ in range(partitions)]
        for file, number, line, offset in read_score_log(path):
            if not self._files or self._files[-1] != file:
                self._files.append(file)
            if isinstance(line, str):
                self._note(DAMAGED, f"{file}, line {number}: {line}")
            elif line.partition >= partitions:
                self._note(NO_PARTITION, f"{file}, line {number}: there is no partition {line.partition}")
            else:
                row = (
                    line.model_version,
                    sum(line.tables.values()),
                    len(self._files) - 1,
                    offset,
                    number,
                )
                for column, value in zip(self._columns[line.partition], row, strict=True):
                    column.append(value)

    def _note(self, reason: str, text: str) -> None:
        self.unreadable[reason] += 1
        self.first = self.first or text

    def lines(self, partition: int) -> Iterator[IndexedLine]:
        """Yield the lines of a partition by model version, those of fewer records of live tables first.

        Parameters
        ----------
        partition
            The partition's number.

        Raises
        ------
        DataError
            A file cannot be read any more.
        """
        versions, applied, files, offsets, numbers = map(np.asarray, self._columns[partition])
        for row in np.lexsort((applied, versions)).tolist():
            file, number = self._files[files[row]], int(numbers[row])
            line = read_line(file, int(offsets[row]))
            if isinstance(line, str) or (line.partition, line.model_version) != (partition, versions[row]):
                self._note(DAMAGED, f"{file}, line {number}: it has changed since the audit began")
                continue
            yield IndexedLine(file, number, line)
