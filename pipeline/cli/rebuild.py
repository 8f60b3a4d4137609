"""`forks rebuild`: the log folded under other settings, each event predicted as it would have been."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from pipeline.cli.evaluate import parse_changes
from pipeline.cli.options import Bootstrap, ConfigFile, ConsumerGroup, Json, Prefix
from pipeline.cli.progress import progress
from pipeline.config.loader import load
from pipeline.errors import ConfigError
from pipeline.tools.checkpoint import Group

EPILOG = """
Examples:

    forks rebuild --set learner.budget=200

    forks rebuild --set budget=80 --set memory=2000.0 --json | jq .rebuilt.total.mistakes

    forks rebuild --set learner.budget=200 --install

    forks rebuild --install    # the configuration has other challengers now

    forks rebuild    # nothing changed: do the outcomes give the very bytes of the snapshots?
"""


def rebuild(
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A setting of the learner that differs; may be given again."
        ),
    ] = None,
    *,
    config: ConfigFile = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    group: ConsumerGroup = None,
    install: Annotated[
        bool,
        typer.Option(
            "--install", help="Let the group go on under these settings, from the models that come out."
        ),
    ] = False,
    window: Annotated[
        int | None, typer.Option(min=1, help="Labelled events in a window.", show_default="a tenth of all")
    ] = None,
    json: Json = False,
) -> None:
    """Learn the outcomes again under other settings, and compare with the model that runs.

    Each event is predicted by what would have been known at that moment, and only then learned: what comes
    out is what would have come out. It only reads, and workers may run meanwhile. Exit code 1 if nothing
    was changed and a snapshot comes out otherwise.

    With --install, the models that come out become those that all partitions continue from, in one
    transaction, with the challengers of the configuration. No worker may run then; workers need these
    settings from then on.
    """
    from pipeline.tools import rebuild as rebuilding  # noqa: PLC0415 - scipy's statistics take a second to load

    different = _parse_learner_changes(changes or [])
    flags = {"kafka.bootstrap": bootstrap, "kafka.prefix": prefix, "kafka.group": group}
    settings = load(config, flags)
    with Group(settings) as entered:
        plan = rebuilding.Rebuild(entered, different, check=not (different or install))
        if install:
            plan.refuse_install()
        with Console(stderr=True).status(
            "Compiling the learner, which takes some seconds the first time ..."
        ):
            plan.factory.warm_up()
        with progress("rebuild", plan.outcomes) as update:
            found = plan.run(update, window)
        if install:
            found = msgspec.structs.replace(found, installed=plan.install())
    if json:
        typer.echo(msgspec.json.encode(found))
    else:
        Console(highlight=False).print(rebuilding.render(found))
    if any(partition_rebuild.same is False for partition_rebuild in found.partitions):
        raise typer.Exit(1)


def _parse_learner_changes(changes: list[str]) -> dict[str, Any]:
    """Read settings by their names within the learner's; others decide what there is to learn from.

    Examples
    --------
    >>> _parse_learner_changes(["learner.budget=200", "width=2.0", "preset=paper"])
    {'budget': 200, 'width': 2.0, 'preset': 'paper'}
    """
    prefix = "learner."
    parsed = parse_changes([prefix + change.strip().removeprefix(prefix) for change in changes])
    named = {name.removeprefix(prefix): value for name, value in parsed.items()}
    foreign = [name for name in named if "." in name]
    if foreign:
        raise ConfigError(
            f"--set {foreign[0]}: only settings of the learner can differ, such as learner.budget"
        )
    return named
