"""Write `jars.lock` anew, after a change of the version: ``python -m pipeline.broker.lock``.

Kafka is resolved by itself. Together with a second artifact, jgo's mediation between versions picks another
kafka-clients, with which the broker does not start.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from pipeline.broker.jars import LOCK, maven_context, sha256
from pipeline.broker.settings import VERSION

ARTIFACTS: Final = (
    f"org.apache.kafka:kafka_2.13:{VERSION}",
    "org.slf4j:slf4j-jdk14:1.7.36",  # Kafka logs through slf4j 1.7; this carries it to the JDK's own logging
)


def main() -> None:
    """Resolve and download the artifacts with all that they need at run time, and write their checksums."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        maven = maven_context(folder)
        lines = set()
        for artifact in ARTIFACTS:
            inputs, needed = maven.resolver.resolve([maven.create_dependency(artifact)])
            for dependency in [*inputs, *needed]:
                file = dependency.artifact.resolve()
                lines.add(f"{sha256(file)}  {file.relative_to(folder).as_posix()}\n")
    LOCK.write_text("".join(sorted(lines, key=lambda line: line.split()[1])))
    print(f"{len(lines)} jars in {LOCK}")


if __name__ == "__main__":
    main()
