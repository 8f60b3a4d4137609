"""`forks rebuild`: learn the log again under other settings, and compare the predictions."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pipeline.cli.changes import parse_changes
from pipeline.cli.options import ConfigOptions, Json, group_options
from pipeline.cli.output import print_found
from pipeline.errors import ConfigError

EPILOG = """
Examples:

    forks rebuild --set learner.budget=200

    forks rebuild --set budget=80 --set memory=2000.0 --json | jq .rebuilt.total.mistakes

    forks rebuild --set learner.budget=200 --install

    forks rebuild --install    # the configuration has other challengers now

    forks rebuild    # nothing changed: do the outcomes give the very bytes of the snapshots?
"""


@group_options
def rebuild(
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Override a setting of the learner (repeatable)."),
    ] = None,
    *,
    options: ConfigOptions,
    install: Annotated[
        bool,
        typer.Option(
            "--install", help="Let the group continue under these settings, from the rebuilt models."
        ),
    ] = False,
    window: Annotated[
        int | None, typer.Option(min=1, help="Labelled events in a window.", show_default="a tenth of all")
    ] = None,
    json: Json = False,
) -> None:
    """Learn the outcomes again under other settings, and compare with the model that runs.

    Each event is predicted from what was known at that moment, and only then learned: the predictions are
    those that a worker with these settings would have made. The command only reads, and workers may run
    meanwhile. The exit code is 1 if no setting was changed and a rebuilt snapshot differs.

    With --install, all partitions continue from the rebuilt models and the challengers of the configuration,
    in one transaction. No worker may run meanwhile, and workers need these settings from then on.
    """
    import msgspec

    from pipeline.tools import rebuild as rebuilding
    from pipeline.tools.checkpoint import Group
    from pipeline.tools.terminal import COMPILING, progress, waiting

    different = _parse_learner_changes(changes or [])
    settings = options.load()
    with Group(settings) as entered:
        plan = rebuilding.Rebuild(entered, different, check=not (different or install))
        if install:
            plan.refuse_install()
        with waiting(COMPILING):
            plan.factory.warm_up()
        with progress("rebuild", plan.outcomes) as update:
            found = plan.run(update, window)
        if install:
            found = msgspec.structs.replace(found, installed=plan.install())
    print_found(found, rebuilding.render, json=json)
    if any(partition_rebuild.same is False for partition_rebuild in found.partitions):
        raise typer.Exit(1)


def _parse_learner_changes(changes: list[str]) -> dict[str, Any]:
    """Parse settings of the learner, with or without the prefix "learner."; refuse all others.

    Parameters
    ----------
    changes
        Settings as NAME=VALUE.

    Returns
    -------
    dict
        Values by the name within the section [learner].

    Raises
    ------
    ConfigError
        A setting is of another section: those decide which outcomes there are to learn.

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
