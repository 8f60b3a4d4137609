# ruff: noqa: PLR0917 -- a command takes all its options as parameters
"""`python -m research`: the papers' experiments, their printed figures beside the measured ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from rich.console import Console

from pipeline.cli.failures import report_failures
from pipeline.cli.options import Json
from pipeline.cli.progress import progress
from pipeline.cli.signals import stop_on_signals

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
EPILOG = """
Examples:

    python -m research table2 --data ../shared/data

    python -m research findings --out reproduced > findings.md    # what all that was run comes to

    python -m research table3 --runs 5 --stream german-1 --json | jq '.rows[].mistakes'
"""

Name = Literal["table2", "table3", "table4", "tried", "figure1", "figure2", "figure3", "graphs", "findings"]


@app.command(epilog=EPILOG)
def reproduce(
    experiment: Annotated[
        Name,
        typer.Argument(help="Which one; findings: a page on what came out.", show_default=False),
    ],
    runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Orders of the data, each with seeds of its own; 20 by default, 5 of tried.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes; times are best compared with 1.")] = 2,
    out: Annotated[Path, typer.Option(help="Folder for results, tables and figures.")] = Path("reproduced"),
    data: Annotated[
        Path,
        typer.Option(
            envvar="FORKS_TEST_DATA",
            help="Folder with libsvm/, kuairec/ and graphs/; a set that is missing is named.",
        ),
    ] = Path("data"),
    streams: Annotated[
        list[str] | None, typer.Option("--stream", help="Only this one; may be given again.")
    ] = None,
    learners: Annotated[
        list[str] | None, typer.Option("--learner", help="Only this one; may be given again.")
    ] = None,
    json: Json = False,
) -> None:
    """Run an experiment of the papers and show what they print beside what comes out.

    Mistakes are counted from the first event, and as the authors count them, with the majority class
    beside both. Each result is kept as it is there: after Ctrl-C the same command goes on where it was.
    """
    from research import reproduce as reproduction  # noqa: PLC0415 - as above
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
        console.print(f"stopped; what is done is kept in {out}, and the same command goes on from there")
        raise typer.Exit(130) from None
    if json:
        typer.echo(msgspec.json.encode(found.as_object()))
    else:
        Console(highlight=False).print(reproduction.render(found))
        console.print(f"all of it is in {out}, as {experiment}.* and, each run by itself, in results.jsonl")


def _print_findings(out: Path, *, as_json: bool) -> None:
    """Print the page that sums up what is in the folder, or its claims."""
    from research.reproduce import findings_of, page_of, read_tables  # noqa: PLC0415 - as above

    tables = read_tables(out)
    if as_json:
        typer.echo(msgspec.json.encode({"experiment": "findings", "rows": findings_of(tables)}))
    else:
        typer.echo(page_of(tables), nl=False)


def _interrupt() -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    with report_failures():
        app(prog_name="python -m research")
