"""`forks demo`: the whole pipeline, once, from the broker to the report."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.cli.output import print_json
from pipeline.errors import ForksError
from pipeline.extras import require
from pipeline.sources.kuairec_files import DEFAULT_MATRIX

if TYPE_CHECKING:
    from pipeline.sources.kuairec import Events
    from pipeline.tools.demo import DemoRun

EPILOG = """
Examples:

    forks demo

    forks demo --data KuaiRec/data --json
"""
KUAIREC_NOTE = "Data: KuaiRec (Gao et al., CIKM 2022), CC BY-SA 4.0"


def demo(
    data: Annotated[
        Path | None,
        typer.Option(help="A KuaiRec folder or CSV.", show_default="invented data, see forks synth"),
    ] = None,
    matrix: Annotated[str, typer.Option(help="The CSV to read if --data is a folder.")] = DEFAULT_MATRIX,
    out: Annotated[Path, typer.Option(help="Where to draw mistakes over events, .svg or .png.")] = Path(
        "forks-data/demo.svg"
    ),
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object last.")] = False,
) -> None:
    """Start a broker, send events and labels, run a worker, kill -9 it in the middle, report.

    The demo uses the Kafka that FORKS_KAFKA__BOOTSTRAP names. Without this variable it uses Docker if an
    engine answers, else an embedded broker that ends with the demo.
    """
    require("to run the demo", "polars", "matplotlib")
    import msgspec
    from rich.console import Console

    from pipeline.broker.available import available_broker
    from pipeline.cli.progress import progress
    from pipeline.sources.kuairec import tables_beside
    from pipeline.sources.synth.files import write_files
    from pipeline.sources.synth.size import Size
    from pipeline.tools.demo import consume, demo_kafka, fill_topics
    from pipeline.tools.report import render, summarize
    from pipeline.tools.report.picture import check_format, draw

    out.parent.mkdir(parents=True, exist_ok=True)
    check_format(out)
    console = Console(stderr=True, highlight=False, soft_wrap=True)

    def notify(text: str) -> None:
        console.print(f"[bold]·[/bold] {text}")

    with tempfile.TemporaryDirectory(prefix="forks-demo-") as scratch:
        if data is None:
            notify("inventing users, videos and plays in KuaiRec's format")
            write_files(Path(scratch), Size())
        source = Path(scratch) if data is None else data
        events = _events(source, matrix, notify)
        notify("starting Apache Kafka; the first time, its jars are downloaded")
        with available_broker() as bootstrap:
            kafka = demo_kafka(bootstrap)
            notify(f"Kafka is at {bootstrap}; topics have the prefix {kafka.prefix}")
            with progress("send", 2 * len(events)) as update:
                fill_topics(events, kafka, update)
            notify("starting a worker; the very first one compiles the learner, which takes some seconds")
            with progress("outcomes", len(events)) as update:
                log = Path(scratch) / "worker.log"
                demo_run = consume(
                    kafka, len(events), tables_beside(source), log, notify=notify, progress=update
                )
            found = summarize(kafka)
    if not json:
        Console(highlight=False).print(render(found))
    draw(found, out, KUAIREC_NOTE if data else "Invented data")
    notify(f"mistakes over events are drawn in {out}")
    rate = len(events) / demo_run.seconds
    notify(f"{rate:,.0f} events/s from first prediction to last outcome, kill and recovery included")
    if json:
        print_json(_figures(msgspec.to_builtins(found), kafka.prefix, demo_run, rate))
    if not found.events == found.outcomes == len(events):
        raise ForksError(
            f"{len(events)} events were sent, but there are {found.events} predictions and "
            f"{found.outcomes} outcomes"
        )


def _events(source: Path, matrix: str, notify: Callable[[str], None]) -> Events:
    from pipeline.sources.kuairec import read_events

    events = read_events(source, matrix)
    skipped = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in events.skipped.items())
    notify(f"{events.rows:,} rows, {len(events):,} of them usable ({skipped or 'none'} skipped)")
    return events


def _figures(report: dict[str, Any], prefix: str, demo_run: DemoRun, rate: float) -> dict[str, Any]:
    return report | {
        "prefix": prefix,
        "events_per_s": round(rate, 1),
        "killed_at": demo_run.killed_at,
        "recovery_s": round(demo_run.recovery_s, 2),
    }
