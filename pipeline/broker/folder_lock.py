"""A lock on a folder, held by one process at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from pipeline.errors import ConfigError


@contextmanager
def locked(folder: Path, content: str, advice: str) -> Iterator[None]:
    """Hold a folder inside the block; make the folder if it does not exist.

    The lock is on the file ``lock`` in the folder. The system releases it when its process ends.

    Parameters
    ----------
    folder : Path
        The folder to hold.
    content : str
        What the folder keeps, for messages.
    advice : str
        What the user can do if the folder cannot be written.

    Raises
    ------
    ConfigError
        The folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise ConfigError(f"cannot keep {content} in {folder}: {error.strerror}. {advice}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            Console(stderr=True, soft_wrap=True, highlight=False).print(
                f"Waiting for another process that works in {folder} ...", markup=False
            )
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
