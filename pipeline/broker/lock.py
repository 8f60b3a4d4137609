"""Write `jars.lock`, after a change of Kafka's version: ``python -m pipeline.broker.lock``.

A command for developers: it needs jgo, which is in the extra `broker`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jgo.maven import MavenContext

from pipeline.broker.jars import LOCK, file_sha256
from pipeline.broker.maven import repository_url
from pipeline.broker.settings import VERSION

# Each is resolved by itself. If Kafka is resolved together with another artifact, jgo's mediation between
# versions chooses another kafka-clients, and the broker does not start.
ARTIFACTS: Final = (
    f"org.apache.kafka:kafka_2.13:{VERSION}",
    "org.slf4j:slf4j-jdk14:1.7.36",  # Kafka logs through slf4j 1.7; this connects it to the JDK's logging
)


def main(lock: Path = LOCK, artifacts: Sequence[str] = ARTIFACTS) -> None:
    """Resolve and download the artifacts and their runtime dependencies, and write their SHA-256.

    Parameters
    ----------
    lock : Path
        The file to write.
    artifacts : sequence of str
        Each as group, name and version, with colons between.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        maven = MavenContext(repo_cache=folder, remote_repos={"maven": repository_url()})
        lines = set()
        for artifact in artifacts:
            inputs, dependencies = maven.resolver.resolve([maven.create_dependency(artifact)])
            for dependency in [*inputs, *dependencies]:
                file = dependency.artifact.resolve()
                lines.add(f"{file_sha256(file)}  {file.relative_to(folder).as_posix()}\n")
    lock.write_text("".join(sorted(lines, key=lambda line: line.split()[1])))
    print(f"{len(lines)} jars in {lock}")


if __name__ == "__main__":
    main()
