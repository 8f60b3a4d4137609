"""Write `jars.lock`, after a change of Kafka's version: ``python -m bench.peers.lock``."""

from __future__ import annotations

from typing import Final

from bench.peers.kafka_streams import JARS
from pipeline.broker.lock import main
from pipeline.broker.settings import VERSION

ARTIFACTS: Final = (
    f"org.apache.kafka:kafka-streams:{VERSION}",
    "com.fasterxml.jackson.core:jackson-databind:2.21.2",
    "org.slf4j:slf4j-jdk14:1.7.36",
)

if __name__ == "__main__":
    main(JARS, ARTIFACTS)
