# ruff: noqa: PLR0917 -- a command takes all its options as parameters
"""The command `python -m research`: an experiment of the papers, printed results beside the measured ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from rich.console import Console

from pipeline.cli.failures import report_failures
from pipeline.cli.options import Json
from pipeline.cli.signals import stop_on_signals
from pipeline.tools.terminal import progress

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
EPILOG = """
Examples:

    python -m research table2 --data ../shared/data

    python -m research findings --out reproduced > findings.md    # a page on all results in the folder

    python -m research table3 --runs 5 --stream german-1 --json | jq '.rows[].mistakes'
"""

Name = Literal["table2", "table3", "table4", "tried", "figure1", "figure2", "figure3", "graphs", "findings"]


@app.command(epilog=EPILOG)
def reproduce(
    experiment: Annotated[
        Name,
        typer.Argument(
            help="The experiment to run; findings prints a page on the results so far.", show_default=False
        ),
    ],
    runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of runs, each with its own order and seeds; by default 20, for tried 5.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes; compare times with 1.")] = 2,
    out: Annotated[Path, typer.Option(help="Folder for results, tables and figures.")] = Path("reproduced"),
    data: Annotated[
        Path,
        typer.Option(
            envvar="FORKS_TEST_DATA",
            help="Folder with the data sets: libsvm/, kuairec/ and graphs/.",
        ),
    ] = Path("data"),
    streams: Annotated[
        list[str] | None, typer.Option("--stream", help="Run only this stream; may be repeated.")
    ] = None,
    learners: Annotated[
        list[str] | None, typer.Option("--learner", help="Run only this learner; may be repeated.")
    ] = None,
    json: Json = False,
) -> None:
    """Run an experiment of the papers and show their printed results beside the measured ones.

    Mistakes are counted from the first event and as the authors count them, with those of the majority class
    beside both. Each result is stored as soon as it is known: after Ctrl-C the same command continues.
    """
    from research import reproduce as reproduction  # noqa: PLC0415 - as below
    from research.experiments import EXPERIMENTS  # noqa: PLC0415 - numba and scipy take seconds to load

    if experiment == "findings":
        _print_findings(out, as_json=json)
        return
    runs = runs or EXPERIMENTS[experiment].runs
    options = reproduction.ExperimentOptions(
        experiment, tuple(streams or ()), tuple(learners or ()), runs, jobs
    )
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    try:
        with stop_on_signals(_interrupt):
            folder = reproduction.DataFolder(data)
            found = reproduction.reproduce(options, folder, out, console.print, progress)
    except KeyboardInterrupt:
        console.print(f"stopped; the results so far are in {out}, and the same command continues from there")
        raise typer.Exit(130) from None
    if json:
        typer.echo(msgspec.json.encode(found.as_object()))
    else:
        Console(highlight=False).print(reproduction.render(found))
        console.print(f"written to {out}: {experiment}.*, and the result of each run in results.jsonl")


def _print_findings(out: Path, *, as_json: bool) -> None:
    """Print the page on the results in the folder, or its claims as JSON."""
    from research.reproduce import findings_of, page_of, read_tables  # noqa: PLC0415 - as above

    tables = read_tables(out)
    if as_json:
        typer.echo(msgspec.json.encode({"experiment": "findings", "rows": findings_of(tables)}))
    else:
        typer.echo(page_of(tables), nl=False)


def _interrupt() -> None:
    raise KeyboardInterrupt


def run() -> None:
    """Run the command, with errors that a user can act on as one line on standard error."""
    with report_failures():
        app(prog_name="python -m research")
