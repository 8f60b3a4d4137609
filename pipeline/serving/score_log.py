"""The log of a follower: each request and what was answered, from which an audit derives the scores again."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import structlog
from msgspec import UNSET, UnsetType

from pipeline.config.stream import Stream
from pipeline.errors import DataError, StorageError
from pipeline.records.encoding import encode
from pipeline.records.fields import Count, Id, Timestamp
from pipeline.records.inputs import Interaction
from pipeline.recovery.libraries import BEFORE_NUMBERS
from pipeline.serving.candidates import CandidateType
from pipeline.serving.exploration import Exploration

MAX_BYTES: Final = 64 * 2**20
"""Size at which a file is rotated."""
OLD_FILES: Final = 8
"""Rotated files that are kept, as FILE.1 (the newest) to FILE.8."""


class LoggedChoice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The candidate that was drawn, and all that it follows from beside the scores."""

    by: Exploration
    """How it was drawn."""
    event_id: Id
    """The event that it was drawn for."""
    chosen: Count
    """Its place among the candidates."""
    propensities: list[float]
    """The probability of each candidate."""


class ScoreLogLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The candidates of one user, and their scores."""

    at: Timestamp
    """When it was answered, in milliseconds."""
    partition: Count
    epoch: Count
    arithmetic: str = BEFORE_NUMBERS
    """The arithmetic of the model's epoch, see `pipeline.recovery.libraries`."""
    model_version: Count
    """Outcomes that the model had learned."""
    as_of: int
    """Stream time of the state record that the model stood at, in milliseconds; -1 before the first."""
    tables: dict[str, int] = {}
    """Offset up to which each live table was applied."""
    challenger: str | None = None
    """The challenger that scored; None for the champion."""
    time: Timestamp
    """The time of all candidates, in milliseconds."""
    ids: list[list[Id]]
    """Of each candidate, the ids of the stream's entities."""
    features: list[list[Any]]
    """Of each candidate, the features of its message as they were decoded: see `CandidateType.features`."""
    scores: Annotated[list[float], msgspec.Meta(min_length=1)]
    """The score of each candidate."""
    explored: LoggedChoice | UnsetType = UNSET
    """What was drawn, and how; absent where nothing was."""

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.features) == len(self.scores):
            raise ValueError("ids, features and scores are not of the same number of candidates")
        if self.explored and len(self.explored.propensities) != len(self.scores):
            raise ValueError("propensities and scores are not of the same number of candidates")

    def candidates(self, stream: Stream) -> list[Interaction]:
        """Return the candidates, as they were when they were scored.

        Parameters
        ----------
        stream
            Definition of the stream.

        Raises
        ------
        ValueError
            They are of a stream with other entities or features.
        """
        kind, entities = CandidateType.of(stream), len(stream.entities)
        if any(len(ids) != entities for ids in self.ids):
            raise ValueError(f"its candidates have not {entities} ids each, as those of the stream have")
        if any(len(each) != len(kind.names) for each in self.features):
            raise ValueError(f"its candidates have not {len(kind.names)} features each, as the stream says")
        return [kind.make(self.time, *each) for each in zip(self.ids, self.features, strict=True)]


class LoggedLine(NamedTuple):
    """A line of a log."""

    file: Path
    number: int
    """From 1."""
    line: ScoreLogLine | str
    """What it says, or what is wrong with it."""
    offset: int
    """Bytes of the file before it."""


class ScoreLog(RotatingFileHandler):
    """Writes lines to a file that is rotated by size. What cannot be written is counted, and said once.

    Parameters
    ----------
    path
        The file; lines are appended.

    Attributes
    ----------
    failures
        Lines that could not be written.

    Raises
    ------
    StorageError
        The file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        try:
            super().__init__(path, maxBytes=MAX_BYTES, backupCount=OLD_FILES, encoding="utf-8")
        except OSError as error:
            raise StorageError(f"{path}: scores cannot be logged there: {error.strerror}") from error
        self.failures = 0

    def write(self, line: ScoreLogLine) -> None:
        """Write a line."""
        text = encode(line).decode()
        self.handle(logging.LogRecord("scores", logging.INFO, "", 0, text, None, None))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - as in logging
        """Count a line that could not be written."""
        self.failures += 1
        if self.failures == 1:
            log = structlog.get_logger()
            log.exception("scores cannot be logged; answers go on without", file=self.baseFilename)


def read_score_log(path: Path) -> Iterator[LoggedLine]:
    """Yield the lines of a log and of its rotated files, the oldest first.

    Parameters
    ----------
    path
        The file that was named to the follower.

    Raises
    ------
    DataError
        A file cannot be read.
    """
    for file in _files(path):
        try:
            with file.open("rb") as lines:
                offset = 0
                for number, text in enumerate(lines, 1):
                    yield LoggedLine(file, number, _decoded(text), offset)
                    offset += len(text)
        except OSError as error:
            raise DataError(f"{file}: cannot be read: {error.strerror}") from error


def read_line(file: Path, offset: int) -> ScoreLogLine | str:
    """Read the line of a file that begins at an offset; return what is wrong with it, if anything is.

    Raises
    ------
    DataError
        The file cannot be read.
    """
    try:
        with file.open("rb") as lines:
            lines.seek(offset)
            return _decoded(lines.readline())
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from error


def _files(path: Path) -> list[Path]:
    """Return a log's files, the oldest first."""
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    pattern = re.compile(re.escape(path.name) + r"\.([1-9][0-9]*)")
    rotated = [
        (int(match[1]), each) for each in path.parent.iterdir() if (match := pattern.fullmatch(each.name))
    ]
    return [*(each for _, each in sorted(rotated, reverse=True)), path]


_decoder: Final = msgspec.json.Decoder(ScoreLogLine)


def _decoded(text: bytes) -> ScoreLogLine | str:
    if not text.endswith(b"\n"):
        return "half a line: it has no end"
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"not a line of scores: {error}"
