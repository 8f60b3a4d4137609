"""Take values of settings from files, such as the secrets that an orchestrator mounts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pipeline.errors import ConfigError
from pipeline.truncate import MAX_SHOWN

LARGEST_VALUE: Final = 2**20
"""Bytes of a file that holds a value, at most."""
FILE_VARIABLE: Final = "_FILE"
"""What the name of a variable ends with that names the file of its value."""


def read_value(path: str, name: str) -> str:
    """Read a value from a file, without the line feed at its end.

    Parameters
    ----------
    path
        Path of the file.
    name
        What names the file, for errors.

    Returns
    -------
    str
        The value.

    Raises
    ------
    ConfigError
        The file cannot be read, is empty, too large or no text. The error never has any of its content.
    """
    value = ""
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST_VALUE + 1)
        value = content.decode().rstrip("\r\n")
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        reason = "is not text in UTF-8"
    except ValueError:  # a null character in the path
        reason = "cannot be read: this is no path"
    else:
        reason = "is empty" if not value else ""
        if len(content) > LARGEST_VALUE:
            reason = f"has more than {LARGEST_VALUE:,} bytes"
    if reason:  # raised here, so that no error that holds the content is its context
        raise ConfigError(f"{name}: {shown_path(path)} {reason}. It has to hold the value of this setting")
    return value


def read_variable(name: str) -> str | None:
    """Return the value of a variable, or of the file that the variable of its name and `_FILE` names.

    Parameters
    ----------
    name
        Name of the variable.

    Returns
    -------
    str or None
        The value; None if neither is set.

    Raises
    ------
    ConfigError
        Both are set, or the file cannot be read.
    """
    own, path = os.environ.get(name), os.environ.get(name + FILE_VARIABLE)
    if path is None:
        return own
    if own is not None:
        raise ConfigError(f"the environment: both {name} and {name}{FILE_VARIABLE} are set; keep one of them")
    return read_value(path, f"the environment ({name}{FILE_VARIABLE})")


def shown_path(path: str) -> str:
    r"""Return a path for an error, unless it may be a secret that was given in place of a path.

    Parameters
    ----------
    path
        What was given as a path.

    Examples
    --------
    >>> shown_path("/run/secrets/password")
    '/run/secrets/password'
    >>> shown_path('{"sasl.password": "hunter2"}')
    'the file (its name is not shown, as it is no usual one)'
    """
    plain = path.isprintable() and len(path) <= MAX_SHOWN and not set(path) & set('{}"')
    return path if plain and path else "the file (its name is not shown, as it is no usual one)"
