"""`forks report`: sum up a run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import ConfigOptions, JsonObject, kafka_options
from pipeline.cli.output import print_found
from pipeline.errors import ConfigError
from pipeline.extras import install_hint, is_installed, require

if TYPE_CHECKING:
    from pipeline.config.stream import Stream
    from pipeline.tools.report import OffPolicy

EPILOG = """
Examples:

    forks report --prefix prod. --out mistakes.svg

    forks report --json | jq .mistakes

    forks report --off-policy --level 0.99
"""


@kafka_options
def report(
    options: ConfigOptions,
    out: Annotated[
        Path | None, typer.Option(help="Draw mistakes over events into this .svg or .png file.")
    ] = None,
    note: Annotated[
        str, typer.Option(help="A line below the picture, for example the source of the data.")
    ] = "",
    window: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Labelled events in a window of mistakes over time.",
            show_default="a hundredth of all",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option(min=1, help="First items of slates that count in NDCG and hit rate.")
    ] = 5,
    off_policy: Annotated[
        bool,
        typer.Option(
            "--off-policy",
            help="Also estimate the value of the policy that chose what was shown, and of the target policy.",
        ),
    ] = False,
    level: Annotated[
        float | None,
        typer.Option(help="Level of confidence of --off-policy, between 0 and 1.", show_default="0.95"),
    ] = None,
    cap: Annotated[
        float | None,
        typer.Option(
            help="Largest weight of an outcome by inverse propensities, above 0.",
            show_default="the square root of the number of outcomes",
        ),
    ] = None,
    json: JsonObject = False,
) -> None:
    """Sum up a run from its topics: counts of all cases, mistakes, AUC, and those of simpler methods.

    Every labelled event counts, from the first on. The command only reads, and a worker may run meanwhile.
    """
    from pipeline.tools.report import render, summarize
    from pipeline.tools.terminal import progress

    if out is not None:
        require("to draw the picture of --out", "matplotlib")
        from pipeline.tools.report.picture import check_format, draw

        check_format(out)
    settings = options.load()
    estimated = _off_policy(settings.stream, level, cap, wanted=off_policy)
    found = summarize(
        settings.kafka,
        stream=settings.stream,
        registry=settings.registry,
        window=window,
        top=top,
        off_policy=estimated,
        show_progress=progress,
    )
    print_found(found, partial(render, stream=settings.stream), json=json)
    if out is not None:
        if found.labelled:
            draw(found, out, note)
            typer.echo(f"the picture is in {out}", err=True)
        else:
            typer.echo(f"{out} was not drawn: there is no labelled event yet", err=True)
    elif not is_installed("matplotlib"):
        typer.echo(
            f"note: no pictures, since matplotlib is not installed. {install_hint('matplotlib')}", err=True
        )


def _off_policy(stream: Stream, level: float | None, cap: float | None, *, wanted: bool) -> OffPolicy | None:
    """Return how the values of policies are estimated; None where that is not wanted.

    Raises
    ------
    ConfigError
        An option is out of its range, is there without --off-policy, or the stream has no propensities.
    """
    from pipeline.tools.report import OffPolicy

    if not wanted:
        if level is not None or cap is not None:
            raise ConfigError("--level and --cap are those of --off-policy: add it, or leave them out")
        return None
    if "target_propensity" not in stream.interactions.carried:
        raise ConfigError(
            "--off-policy needs the probabilities with which items were chosen: name "
            "interactions.propensity and interactions.target_propensity in the stream's definition"
        )
    if level is not None and not 0.0 < level < 1.0:
        raise ConfigError(f"--level is {level:g}: it lies between 0 and 1, such as 0.95")
    if cap is not None and not 0.0 < cap < float("inf"):
        raise ConfigError(f"--cap is {cap:g}: it is a number above 0, such as 20")
    return OffPolicy(cap=cap) if level is None else OffPolicy(level, cap)
