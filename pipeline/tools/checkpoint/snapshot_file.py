"""Read a snapshot from a file of unknown content."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from safetensors import SafetensorError, safe_open

from pipeline.errors import DataError, StateError
from pipeline.input_files import refuse_large
from pipeline.model.snapshot import parse
from pipeline.truncate import truncate

LARGEST_SNAPSHOT: Final = 2 * 10**9
"""Bytes of a snapshot, at most: one of a million users and a million videos has about a tenth."""
LONGEST_REASON: Final = 400
"""Characters of the reason why a file is no snapshot, at most."""


def read_snapshot_file(file: Path) -> bytes:
    """Read a snapshot from a file.

    Parameters
    ----------
    file
        File that `forks checkpoint export` wrote.

    Returns
    -------
    bytes
        The snapshot, which may still be of other settings or of another log.

    Raises
    ------
    DataError
        The file cannot be read, is too large, or is no snapshot of this version. Only its header is read
        before that is known.
    """
    refuse_large(file, LARGEST_SNAPSHOT)
    try:
        with safe_open(file, framework="np"):
            pass
        data = file.read_bytes()
        parse(data)
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}") from error
    except SafetensorError as error:
        raise DataError(f"{file}: is damaged, or no safetensors: {truncate(str(error))}") from error
    except StateError as error:
        raise DataError(f"{file}: {truncate(str(error), LONGEST_REASON)}") from error
    return data
