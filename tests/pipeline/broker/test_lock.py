"""The lock that a developer's command writes, from a repository on this machine."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pipeline.broker.lock import main
from tests.support.maven_repository import serve

POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId><artifactId>{name}</artifactId><version>{version}</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY = (
    "<dependency><groupId>org.example</groupId><artifactId>{}</artifactId><version>{}</version>"
    "<scope>{}</scope></dependency>"
)


def artifact(name: str, version: str, *dependencies: str) -> dict[str, bytes]:
    """The files of an artifact: its jar and its POM."""
    stem = f"org/example/{name}/{version}/{name}-{version}"
    pom = POM.format(name=name, version=version, dependencies="".join(dependencies))
    return {f"{stem}.jar": f"the jar {name}".encode(), f"{stem}.pom": pom.encode()}


def test_the_lock_has_the_checksums_of_artifacts_and_their_runtime_dependencies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        **artifact("main", "2.0", DEPENDENCY.format("needed", "1.1", "runtime")),
        **artifact("needed", "1.1", DEPENDENCY.format("tests", "1.0", "test")),
        **artifact("apart", "3.0"),
        **artifact("tests", "1.0"),
    }
    with serve(tmp_path / "repository", files) as repository:
        monkeypatch.setenv("FORKS_MAVEN_URL", repository.url)
        main(tmp_path / "jars.lock", ("org.example:main:2.0", "org.example:apart:3.0"))

    paths = [f"org/example/{path}.jar" for path in ("apart/3.0/apart-3.0", "main/2.0/main-2.0")]
    paths.append("org/example/needed/1.1/needed-1.1.jar")
    expected = [f"{hashlib.sha256(files[path]).hexdigest()}  {path}" for path in paths]
    assert (tmp_path / "jars.lock").read_text().splitlines() == expected
