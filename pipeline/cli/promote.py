"""`forks promote`: a challenger becomes the champion."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.console import Console

from pipeline.cli.options import Bootstrap, ConfigFile, ConsumerGroup, Json, Prefix
from pipeline.cli.progress import progress
from pipeline.config.loader import load
from pipeline.tools.checkpoint import Group
from pipeline.tools.promotion import Promotion

EPILOG = """
Examples:

    forks promote wider

    forks promote wider --former narrow --json | jq -r '.configuration[]'
"""


class _PromotionResult(msgspec.Struct):
    """A promotion."""

    champion: str
    former: str
    configuration: list[str]
    """Lines for the workers' forks.toml."""


def promote(
    name: Annotated[str, typer.Argument(help='The challenger, of learner = "forks".', show_default=False)],
    *,
    config: ConfigFile = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    group: ConsumerGroup = None,
    former: Annotated[
        str, typer.Option(help="What the champion of now is called among the challengers.")
    ] = "former",
    json: Json = False,
) -> None:
    """Let a challenger and the champion swap roles, while no worker runs.

    Both keep all that they have learned: predictions are the promoted learner's from the next one on, and
    the former champion goes on as a challenger. Only challengers of FORKS can be promoted; rivals are there
    to be compared with. At the end it prints what has to stand in forks.toml before workers start again. All
    partitions change in one transaction, and `forks audit` derives what was made before by the learner that
    made it.
    """
    settings = load(config, {"kafka.bootstrap": bootstrap, "kafka.prefix": prefix, "kafka.group": group})
    with Group(settings) as entered:
        promotion = Promotion(entered, name, former)
        with progress("fold", promotion.outcomes) as update:
            lines = promotion.run(update)
    if json:
        typer.echo(msgspec.json.encode(_PromotionResult(name, former, lines)))
        return
    console = Console(highlight=False, soft_wrap=True, markup=False)
    console.print(f"{name} is the champion now, and the former one is the challenger {former}.")
    console.print(
        "Put this into forks.toml, in place of [learner] and all [challengers.NAME], before you start "
        "workers; with other settings they refuse:\n"
    )
    for line in lines:
        console.print(f"  {line}".rstrip())
