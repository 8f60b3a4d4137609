"""`forks audit`: verify that the outputs follow from the inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.options import ConfigOptions, Json, group_options

EPILOG = """
Examples:

    forks audit --config forks.toml

    forks audit --from-snapshot --json | jq '.partitions[].findings[0]'

    forks audit --scores scores.jsonl

Exit codes: 0 no difference, 1 a difference, 5 the outputs were made under other settings.
"""


@group_options
def audit(
    options: ConfigOptions,
    from_snapshot: Annotated[
        bool,
        typer.Option(
            "--from-snapshot",
            help="Derive only the predictions made since each partition's last snapshot, which is quicker.",
        ),
    ] = False,
    scores: Annotated[
        Path | None,
        typer.Option(
            "--scores",
            metavar="FILE",
            help="Derive the answers again, too, that a follower has logged here (forks serve --log-scores).",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Derive every prediction again from the topics, compare bits, and trace each input to its disposition.

    The audit needs the workers' settings. It only reads, and workers may run meanwhile: what they commit
    after its start is left to the next audit.
    """
    from pipeline.cli.output import print_found
    from pipeline.tools.audit import capture_view, render, run_audit
    from pipeline.tools.terminal import progress, waiting

    settings = options.load()
    with waiting("Reading up to which offsets the topics are committed ..."):
        view = capture_view(settings)
    with progress("audit", view.records) as update:
        report = run_audit(settings, view, from_snapshot=from_snapshot, scores=scores, progress=update)
    print_found(report, render, json=json)
    if report.differences:
        raise typer.Exit(1)
