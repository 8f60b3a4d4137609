"""Options that several commands share, so that they are called and explained the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[
    Path | None, typer.Option("--config", "-c", help="TOML file; without it ./forks.toml, if there is one.")
]
Bootstrap = Annotated[
    str | None, typer.Option(help="Kafka's address, host:port. Else FORKS_KAFKA__BOOTSTRAP or the file's.")
]
Prefix = Annotated[str | None, typer.Option(help="Put before every topic's name.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
ConsumerGroup = Annotated[str | None, typer.Option("--group", help="The consumer group.")]
