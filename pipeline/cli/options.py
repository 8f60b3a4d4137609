"""Options that several commands share, so that their names and help texts are the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[
    Path | None, typer.Option("--config", "-c", help="TOML file. Default: ./forks.toml, if there is one.")
]
Bootstrap = Annotated[
    str | None,
    typer.Option(help="Kafka's address, host:port. Default: FORKS_KAFKA__BOOTSTRAP, then the TOML file."),
]
Prefix = Annotated[str | None, typer.Option(help="Prefix of every topic's name, such as prod.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
ConsumerGroup = Annotated[str | None, typer.Option("--group", help="The consumer group.")]
