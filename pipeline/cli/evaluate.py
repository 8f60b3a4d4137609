"""`forks evaluate`: run a preset on a file, each event predicted before it is learned."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pipeline.cli.output import print_json
from pipeline.errors import ConfigError
from pipeline.excerpt import shortened
from pipeline.extras import require
from pipeline.sources.kuairec_files import DEFAULT_MATRIX

EPILOG = """
Examples:

    forks evaluate KuaiRec/data

    forks evaluate KuaiRec/data --at-once --set budget=200 --json | jq .auc

    forks evaluate german.npz --preset paper --set width=50 --permutation 1

    forks evaluate clicks.csv --label clicked --limit 10000

    forks evaluate a9a.libsvm
"""


def evaluate(
    data: Annotated[
        Path,
        typer.Argument(
            help="KuaiRec's folder or a CSV in its columns; .npz of X and y, or of a sparse matrix and y; "
            "any other .csv; under any other ending, text in LIBSVM's format.",
            show_default=False,
        ),
    ],
    preset: Annotated[
        Literal["practical", "paper"], typer.Option(help="Settings to start from.")
    ] = "practical",
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting that differs; may be given again."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many events.", show_default="all")
    ] = None,
    permutation: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="SEED",
            help="Events in a random order; files that are sorted by label need it.",
            show_default="as they come",
        ),
    ] = None,
    delays: Annotated[
        bool | None,
        typer.Option(
            "--delays/--at-once",
            help="Whether a label arrives when the play has ended, or before the next event.",
            show_default="delays where there are times",
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Column of a CSV's labels.", show_default="the last")
    ] = None,
    matrix: Annotated[str, typer.Option(help="The CSV to read if DATA is a folder.")] = DEFAULT_MATRIX,
    window: Annotated[
        int | None, typer.Option(min=1, help="Events in a window.", show_default="a tenth of all")
    ] = None,
    regret: Annotated[
        bool, typer.Option(help="Compute the best fixed linear predictor, to measure regret against.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Evaluate a preset on a file: predict each event, count it, then learn its label.

    Every event counts, from the first on. Labels are -1 and 1, or 0 and 1.
    Plays of KuaiRec get the pipeline's features: running statistics.
    """
    require("to read the events to evaluate on", "polars")
    from rich.console import Console

    from pipeline.cli.progress import progress
    from pipeline.config.tree import Learner
    from pipeline.model.warm_up import warm_up
    from pipeline.tools import evaluate as evaluation

    learner = Learner.model_validate({**parse_changes(changes or []), "preset": preset})
    console = Console(stderr=True)
    with console.status(f"Reading {data} ..."):
        order = evaluation.Order(permutation, limit, delays)
        trial = evaluation.prepare(data, learner, order, matrix=matrix, label=label)
    with console.status("Compiling the learner, which takes some seconds the first time ..."):
        warm_up(trial.settings)
    with progress("evaluate", len(trial.X)) as update:
        done = evaluation.run(trial, update)
        update(len(trial.X))
    with console.status("Summing up, with the best fixed linear predictor in hindsight ..."):
        found = evaluation.evaluate(trial, learner, done, window=window, regret=regret)
    if json:
        print_json(found)
    else:
        Console(highlight=False).print(evaluation.render(found))


def parse_changes(changes: list[str]) -> dict[str, Any]:
    """Parse settings of the command line: values as in TOML, but text needs no quotes.

    Parameters
    ----------
    changes
        Settings as NAME=VALUE.

    Returns
    -------
    dict
        Values by name.

    Raises
    ------
    ConfigError
        A change is not NAME=VALUE, or names the preset.

    Examples
    --------
    >>> parse_changes(["width=2.0", "loss=hinge", "bounded=false", "kernel_columns=[0, 4]"])
    {'width': 2.0, 'loss': 'hinge', 'bounded': False, 'kernel_columns': [0, 4]}
    """
    settings: dict[str, Any] = {}
    for change in changes:
        name, equals, value = change.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise ConfigError(f"--set {shortened(change)}: expected is NAME=VALUE, such as width=2.0")
        if name.strip() == "preset":
            raise ConfigError(f"--set {change}: the preset is an option of its own: --preset {value.strip()}")
        settings[name.strip()] = _value(value.strip())
    return settings


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (RecursionError, ValueError):  # no TOML, or a number of thousands of digits
        return text
