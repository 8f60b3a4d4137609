"""The Maven repository that jars are downloaded from."""

from __future__ import annotations

import os
from typing import Final

from pipeline.broker.settings import OWN_BROKER_HINT
from pipeline.errors import BrokerError

MAVEN_VARIABLE: Final = "FORKS_MAVEN_URL"


def repository_url() -> str:
    """Return the address of the Maven repository, without a slash at its end.

    ``FORKS_MAVEN_URL`` names it. Without this variable it is the default of jgo, Maven Central; jgo is
    installed for development only.

    Raises
    ------
    BrokerError
        The variable is not set, and jgo is not installed.
    """
    if url := os.environ.get(MAVEN_VARIABLE):
        return url.rstrip("/")
    try:
        from jgo.maven import MavenContext  # noqa: PLC0415 - a development dependency
    except ModuleNotFoundError as error:
        raise BrokerError(
            f"no Maven repository is known to download Apache Kafka from: set {MAVEN_VARIABLE} to the "
            f"address of Maven Central or of a mirror. {OWN_BROKER_HINT}"
        ) from error
    [url] = MavenContext().remote_repos.values()
    return str(url).rstrip("/")
