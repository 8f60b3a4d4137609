"""Run Apache Kafka with the variables of the image apache/kafka: the program of its stand-in.

It is copied into the image alone, so it imports nothing of this project.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

JAVA: Final = "/opt/java/bin/java"
LIBRARIES: Final = "/opt/kafka/libs/*"
PROPERTIES: Final = Path("/opt/kafka/config/server.properties")
CLUSTER: Final = "5L6g3nShT-eMCtK--X86sw"
"""The cluster id that apache/kafka takes without a variable."""
NO_SETTINGS: Final = frozenset({"KAFKA_HEAP_OPTS", "KAFKA_OPTS"})


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that variables stand for.

    >>> settings({"KAFKA_NODE_ID": "1", "KAFKA_HEAP_OPTS": "-Xmx1G", "HOME": "/"})
    {'node.id': '1'}
    """
    return {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in environment.items()
        if name.startswith("KAFKA_") and name not in NO_SETTINGS
    }


def main() -> None:
    """Format the folder of the data if it is new, and become the broker."""
    lines = [f"{name}={value}\n" for name, value in settings(os.environ).items()]
    PROPERTIES.write_text("".join(lines), encoding="utf-8")
    java = [JAVA, "-cp", LIBRARIES]
    storage = [*java, "kafka.tools.StorageTool", "format", "--ignore-formatted"]
    code = os.spawnv(os.P_WAIT, JAVA, [*storage, f"--cluster-id={CLUSTER}", f"--config={PROPERTIES}"])
    if code:
        sys.exit(code)
    os.execv(JAVA, [*java, "-Xmx1G", "kafka.Kafka", str(PROPERTIES)])


if __name__ == "__main__":
    main()
