"""The Maven repository that jars are downloaded from."""

from __future__ import annotations

import os
from typing import Final

from pipeline.broker.settings import OWN_BROKER_HINT
from pipeline.extras import require

MAVEN_VARIABLE: Final = "FORKS_MAVEN_URL"


def repository_url() -> str:
    """Return the address of the Maven repository, without a slash at its end.

    ``FORKS_MAVEN_URL`` names it. Without this variable it is the default of jgo, Maven Central.

    Raises
    ------
    ConfigError
        The variable is not set, and jgo is not installed.
    """
    if url := os.environ.get(MAVEN_VARIABLE):
        return url.rstrip("/")
    require(
        f"to download Apache Kafka from the default Maven repository, since {MAVEN_VARIABLE} names none",
        "jgo",
        alternative=OWN_BROKER_HINT,
    )
    from jgo.maven import MavenContext  # noqa: PLC0415 - of the extra `broker`, and of use only without the variable

    [url] = MavenContext().remote_repos.values()
    return str(url).rstrip("/")
