"""`forks promote`: make a challenger the champion."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.cli.options import ConfigOptions, Json, group_options
from pipeline.cli.output import print_json

EPILOG = """
Examples:

    forks promote wider

    forks promote wider --former narrow --json | jq -r '.configuration[]'
"""


@group_options
def promote(
    name: Annotated[str, typer.Argument(help='The challenger, of learner = "forks".', show_default=False)],
    *,
    options: ConfigOptions,
    former: Annotated[
        str, typer.Option(help="Name of the current champion among the challengers from then on.")
    ] = "former",
    json: Json = False,
) -> None:
    """Let a challenger and the champion swap roles, while no worker runs.

    Both keep all that they have learned: the promoted learner makes the next prediction, and the former
    champion goes on as a challenger. Only challengers with learner = "forks" can be promoted; rivals are for
    comparison only. All partitions change in one transaction. At the end the command prints what forks.toml
    has to contain before workers start again. `forks audit` derives each prediction by the learner that was
    champion when it was made.
    """
    from pipeline.tools.checkpoint import Group
    from pipeline.tools.promotion import Promotion
    from pipeline.tools.terminal import progress

    settings = options.load()
    with Group(settings) as entered:
        promotion = Promotion(entered, name, former)
        with progress("learn", promotion.outcomes) as update:
            configuration = promotion.run(update)
    if json:
        print_json({"champion": name, "former": former, "configuration": configuration})
        return
    typer.echo(f"{name} is the champion now, and the former one is the challenger {former}.")
    typer.echo(
        "Put this into forks.toml, in place of [learner] and all [challengers.NAME], before you start "
        "workers; with other settings they refuse to start:\n"
    )
    for line in configuration:
        typer.echo(f"  {line}".rstrip())
