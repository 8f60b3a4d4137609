"""`forks demo`: the whole pipeline, once, from the broker to the report."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.cli.options import Labels
from pipeline.cli.output import print_json
from pipeline.cli.replay import DEFAULT_DELAY, parse_delay, refuse_labels
from pipeline.cli.signals import stop_on_signals
from pipeline.errors import ConfigError, DataError, ForksError
from pipeline.extras import require
from pipeline.sources.kuairec_files import DEFAULT_MATRIX

if TYPE_CHECKING:
    from pipeline.config.settings import Kafka
    from pipeline.sources.kuairec import Events
    from pipeline.tools.demo import DemoData, DemoRun
    from pipeline.tools.report import Report

EPILOG = """
Examples:

    forks demo

    forks demo --serve

    forks demo --data KuaiRec/data --json

    forks demo --stream deliveries

    forks demo --stream orders.toml --data orders.jsonl --label-delay 30m
"""
KUAIREC_NOTE = "Data: KuaiRec (Gao et al., CIKM 2022), CC BY-SA 4.0"
TRANSACTIONS = 200
"""Transactions that the worker needs for the events of a small table, at least: else it would be done before
it is killed."""


def demo(
    stream: Annotated[
        str,
        typer.Option(
            metavar="kuairec|deliveries|FILE",
            help="The stream: plays of videos, invented deliveries, or the one that a file defines.",
        ),
    ] = "kuairec",
    data: Annotated[
        Path | None,
        typer.Option(
            help="A KuaiRec folder or CSV; with the definition of another stream, a table of its events.",
            show_default="invented data, see forks synth",
        ),
    ] = None,
    label_delay: Annotated[
        str,
        typer.Option(help="How long after its event a label comes, where a stream's table lacks its time."),
    ] = DEFAULT_DELAY,
    labels: Labels = None,
    matrix: Annotated[str, typer.Option(help="The CSV to read if --data is a folder.")] = DEFAULT_MATRIX,
    out: Annotated[Path, typer.Option(help="Where to draw mistakes over events, .svg or .png.")] = Path(
        "forks-data/demo.svg"
    ),
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Then answer requests for scores until Ctrl-C, and show how to ask."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object last.")] = False,
) -> None:
    """Start a broker, send events and labels, run a worker, kill -9 it in the middle, report.

    The demo uses the Kafka that FORKS_KAFKA__BOOTSTRAP names. Without this variable it uses Docker if an
    engine answers, else an embedded broker that ends with the demo.
    """
    require("to run the demo", "polars", "matplotlib")
    import msgspec

    from pipeline.broker.available import available_broker
    from pipeline.tools.demo import compiling, consume, demo_kafka, fill_topics
    from pipeline.tools.report import render, summarize
    from pipeline.tools.report.picture import check_format, draw
    from pipeline.tools.terminal import progress, show

    out.parent.mkdir(parents=True, exist_ok=True)
    check_format(out)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="forks-demo-")))
        log = scratch / "worker.log"
        wait_for_compiler = stack.enter_context(compiling(log, _notify))
        if stream in {"kuairec", "deliveries"}:
            refuse_labels(labels)
        if stream == "kuairec":
            sent = _kuairec(data, matrix, scratch)
        elif stream == "deliveries":
            sent = _deliveries(data, scratch)
        else:
            sent = _defined(Path(stream), data, parse_delay(label_delay), labels)
        events = len(sent.events)
        _notify("starting Apache Kafka; the first time, its jars are downloaded")
        bootstrap = stack.enter_context(available_broker())
        kafka = demo_kafka(bootstrap)
        _notify(f"Kafka is at {bootstrap}; topics have the prefix {kafka.prefix}")
        with progress("send", sent.messages) as update:
            fill_topics(sent, kafka, update)
        wait_for_compiler()
        _notify("starting a worker")
        with progress("outcomes", sent.events.labels) as update:
            demo_run = consume(kafka, sent, log, notify=_notify, progress=update)
        found = summarize(kafka, stream=sent.stream)
        if not serve:
            stack.close()
        if not json:
            show(render(found, sent.stream))
        if found.labelled:
            draw(found, out, _note(stream, data))
            _notify(f"mistakes over events are drawn in {out}")
        rate = events / demo_run.seconds
        _notify(f"{rate:,.0f} events/s from first prediction to last outcome, kill and recovery included")
        if json:
            print_json(_figures(msgspec.to_builtins(found), kafka.prefix, demo_run, rate))
        _check(found, sent, invented=data is None)
        if serve:
            _serve(kafka, sent, scratch)


def _serve(kafka: Kafka, sent: DemoData, scratch: Path) -> None:
    """Answer requests for scores until Ctrl-C."""
    from pipeline.tools.demo import serving

    _notify("starting a follower, which answers requests for scores with the model of the stream")
    with serving(kafka, sent, scratch / "follower.log") as follower, stop_on_signals(follower.stop):
        follower.wait_until_ready()
        _notify(f"ask it in another shell; Ctrl-C ends the demo, and {follower.url}/openapi.json says more")
        typer.echo(follower.curl_line)
        follower.wait()


def _check(found: Report, sent: DemoData, *, invented: bool) -> None:
    """Refuse a run in which records were lost or made up."""
    events, labels = len(sent.events), sent.events.labels
    read = found.counters["interactions"], found.counters["labels"]
    interactions = sent.messages - labels
    if read != (interactions, labels) or found.differences:
        raise ForksError(
            f"{interactions} interactions and {labels} labels were sent, but {read[0]} and {read[1]} were "
            "read"
        )
    if invented and not found.events == found.outcomes == events:
        raise ForksError(
            f"{events} events were sent, but there are {found.events} predictions and "
            f"{found.outcomes} outcomes"
        )


def _kuairec(data: Path | None, matrix: str, scratch: Path) -> DemoData:
    from importlib.resources import files

    from pipeline.config.stream import KUAIREC
    from pipeline.sources.kuairec import read_events, tables_beside
    from pipeline.sources.synth.files import write_files
    from pipeline.sources.synth.size import Size
    from pipeline.tools.demo import DemoData

    if data is None:
        _notify("inventing users, videos and plays in KuaiRec's format")
        write_files(scratch, Size())
    source = scratch if data is None else data
    events = read_events(source, matrix)
    _describe(events)
    definition = scratch / "kuairec.toml"
    definition.write_bytes(files("pipeline.config").joinpath("streams/kuairec.toml").read_bytes())
    tables = {f"FORKS_FEATURES__{name.upper()}": str(path) for name, path in tables_beside(source).items()}
    return DemoData(events, KUAIREC, _definition(definition) | tables)


def _deliveries(data: Path | None, scratch: Path) -> DemoData:
    from pipeline.sources.synth.files import DEFINITION, DELIVERIES, write_files
    from pipeline.sources.synth.size import Size

    if data is not None:
        raise ConfigError(
            f"--data {data}: deliveries are invented. For a table of your own, give the file with the "
            "definition of its stream: --stream FILE.toml"
        )
    _notify("inventing couriers, restaurants and orders")
    write_files(scratch, Size(), stream="deliveries")
    return _defined(scratch / DEFINITION, scratch / DELIVERIES, 0)


def _defined(definition: Path, data: Path | None, label_delay: int, labels: Path | None = None) -> DemoData:
    from pipeline.config.loader import read_definition
    from pipeline.config.settings import Worker
    from pipeline.sources.rows import read_rows
    from pipeline.tools.demo import DemoData

    if not definition.is_file():
        raise ConfigError(
            f"--stream {definition}: there is no such file. It is kuairec, deliveries, or the file with the "
            "definition of a stream, such as `forks stream init` drafts"
        )
    stream = read_definition(definition)
    if stream.needs_registry:
        raise ConfigError(
            f"--stream {definition}: the demo starts no schema registry. Set the formats there to "
            '"json", or use your own Kafka and registry with forks replay and forks run'
        )
    if data is None:
        raise ConfigError(f"--stream {definition}: add --data TABLE, a table of the events of this stream")
    events = read_rows(data, stream, label_delay, labels)
    _describe(events)
    if not len(events):
        raise DataError(f"{data}: none of the {events.rows:,} rows can be used: {events.reasons}")
    batch = min(Worker().batch, max(1, 2 * len(events) // TRANSACTIONS))
    return DemoData(events, stream, _definition(definition) | {"FORKS_WORKER__BATCH": str(batch)})


def _definition(file: Path) -> dict[str, str]:
    """Return the variable that names a stream's definition, whatever `forks.toml` names."""
    return {"FORKS_STREAM": dumps(str(file.absolute()))}


def _note(stream: str, data: Path | None) -> str:
    if data is None:
        return "Invented data"
    return KUAIREC_NOTE if stream == "kuairec" else f"Data: {data.name}"


def _notify(text: str) -> None:
    from pipeline.tools.terminal import notice

    notice(f"· {text}")


def _describe(events: Events) -> None:
    if events.taken_for:
        _notify(events.taken_for)
    _notify(f"{events.rows:,} rows, {len(events):,} of them usable ({events.reasons or 'none'} skipped)")


def _figures(report: dict[str, Any], prefix: str, demo_run: DemoRun, rate: float) -> dict[str, Any]:
    recovery = demo_run.recovery_s
    return report | {
        "prefix": prefix,
        "events_per_s": round(rate, 1),
        "killed_at": demo_run.killed_at,
        "recovery_s": None if recovery is None else round(recovery, 2),
    }
