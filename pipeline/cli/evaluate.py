"""`forks evaluate`: run settings on a file, each event predicted before it is learned."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from pipeline.cli.changes import parse_changes
from pipeline.cli.options import ConfigFile, JsonObject, Labels
from pipeline.cli.output import print_found, print_json
from pipeline.cli.replay import DEFAULT_DELAY, describe_rows, parse_delay
from pipeline.errors import ConfigError, DataError
from pipeline.extras import require
from pipeline.sources.kuairec_files import DEFAULT_MATRIX

if TYPE_CHECKING:
    from pipeline.config.settings import Config, Learner
    from pipeline.config.stream import Stream
    from pipeline.sources.kuairec import Events
    from pipeline.tools.evaluate import Source

EPILOG = """
Examples:

    forks evaluate KuaiRec/data

    forks evaluate KuaiRec/data --at-once --set budget=200 --json | jq .auc

    forks evaluate german.npz --preset paper --set width=50 --permutation 1

    forks evaluate clicks.csv --label clicked --limit 10000

    forks evaluate a9a.libsvm

    forks evaluate orders.jsonl --config forks.toml --label-delay 30m --set budget=200
"""
TOLERATED_LATE = 0.01
"""Share of labels that may come after the window without a warning."""
EXAMPLES = (".csv", ".txt", ".data")
"""Endings of tables that may also be examples without a stream."""


def evaluate(
    data: Annotated[
        Path,
        typer.Argument(
            help="With the definition of a stream, a table of its events: text, JSON or Parquet. Without, "
            "KuaiRec's folder or a CSV in its columns; .npz of X and y, or of a sparse matrix and y; "
            "any other .csv; under any other ending, text in LIBSVM's format.",
            show_default=False,
        ),
    ],
    preset: Annotated[
        Literal["practical", "paper"] | None,
        typer.Option(
            help="Settings of the learner to start from.",
            show_default="practical; for a stream, those of the configuration",
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Override a setting (repeatable)."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of events.", show_default="all")
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
    label_delay: Annotated[
        str | None,
        typer.Option(
            help="How long after its event a label comes, where a stream's table lacks its time.",
            show_default=DEFAULT_DELAY,
        ),
    ] = None,
    labels: Labels = None,
    window: Annotated[
        int | None,
        typer.Option(
            min=1, help="Events in a window.", show_default="a tenth of all; for a stream, a hundredth"
        ),
    ] = None,
    regret: Annotated[
        bool,
        typer.Option(
            help="Compute the best fixed linear predictor, to measure regret against; not for a stream."
        ),
    ] = True,
    config: ConfigFile = None,
    json: JsonObject = False,
) -> None:
    """Evaluate settings on a file: predict each event, count it, then learn its label.

    Every event counts, from the first on. Labels are -1 and 1, or 0 and 1.
    Plays of KuaiRec get the pipeline's features: running statistics.

    With the definition of a stream, as "stream" in the configuration, the pipeline itself runs on a table of
    its events, without Kafka and in one partition. The figures are those of "forks report" after a replay.
    Exits with 6 if more than 1% of the rows cannot be used, and says why.
    """
    require("to read the events to evaluate on", "polars")
    given = {
        "--matrix": None if matrix == DEFAULT_MATRIX else matrix,
        "--preset": preset,
        "--limit": limit,
        "--permutation": permutation,
        "--label": label,
        "--label-delay": label_delay,
        "--labels": labels,
        "--config": config,
    }
    flags = [] if delays is None else ["--delays" if delays else "--at-once"]
    command = _command(data, given, [*flags, *([] if regret else ["--no-regret"])], changes or [])
    settings = _stream_settings(data, config, label)
    if settings is not None:
        _refuse_order(permutation, delays, label)
        settings = _with_learner(settings, preset, parse_changes(changes or []))
        table = _Table(data, labels, parse_delay(label_delay or DEFAULT_DELAY), limit)
        _evaluate_stream(table, settings, window, command, as_json=json)
        return
    for option, said in (("--label-delay", label_delay), ("--labels", labels)):
        if said is not None:
            raise ConfigError(f"{option} {said}: {data} is not read as the table of a stream")
    from pipeline.config.settings import Learner
    from pipeline.tools.evaluate import Order, Source

    learner = Learner.model_validate({**parse_changes(changes or []), "preset": preset or "practical"})
    source = Source(data, matrix, label, Order(permutation, limit, delays))
    _evaluate_examples(source, learner, window, command, regret=regret, as_json=json)


def _command(data: Path, given: Mapping[str, object], flags: list[str], changes: list[str]) -> str:
    """Return the command that was run, with the options that change what is found."""
    parts = ["forks", "evaluate", str(data)]
    for name, value in [*given.items(), *(("--set", change) for change in changes)]:
        parts += [] if value is None else [name, str(value)]
    return shlex.join([*parts, *flags])


def _stream_settings(data: Path, config: Path | None, label: str | None) -> Config | None:
    """Return the configuration if the file is a table of a stream's events, else None."""
    from pipeline.config.loader import load
    from pipeline.config.stream import KUAIREC
    from pipeline.sources.table_files import is_table

    if config is None and (label is not None or not is_table(data) or data.is_dir()):
        return None

    settings = load(config)
    if settings.stream != KUAIREC:
        return settings
    if config is not None:
        raise ConfigError(
            f"--config {config}: it names no stream, and on KuaiRec's data an evaluation takes the settings "
            "of --preset and --set alone"
        )
    if data.suffix not in EXAMPLES:
        raise ConfigError(
            f"{data}: there is no definition of its stream. `forks stream init {data} --out stream.toml` "
            'drafts one; then put stream = "stream.toml" into forks.toml'
        )
    return None


def _refuse_order(permutation: int | None, delays: bool | None, label: str | None) -> None:
    """Refuse options that do not fit a stream, whose definition says what they would say."""
    if permutation is not None:
        raise ConfigError(f"--permutation {permutation}: the events of a stream come in the order of time")
    if delays is not None:
        raise ConfigError(
            f"{'--delays' if delays else '--at-once'}: labels of a stream come at the time in its table, "
            "or else --label-delay after their events"
        )
    if label is not None:
        raise ConfigError(
            f"--label {label}: the stream's definition says where the label is, as labels.value"
        )


def _with_learner(settings: Config, preset: str | None, changes: dict[str, Any]) -> Config:
    """Return a configuration whose learner has another preset, or settings that differ."""
    from pipeline.model.challengers import parse_learner

    learner = settings.learner
    begin = {"preset": learner.preset, **learner.overrides} if preset is None else {"preset": preset}
    return settings.model_copy(update={"learner": parse_learner("learner", begin | changes)})


def _evaluate_examples(
    source: Source, learner: Learner, window: int | None, command: str, *, regret: bool, as_json: bool
) -> None:
    """Evaluate a learner on examples, or on plays of KuaiRec."""
    from pipeline.model.warm_up import warm_up
    from pipeline.tools import evaluate as evaluation
    from pipeline.tools.terminal import COMPILING, progress, waiting

    with waiting(f"Reading {source.path} ..."):
        trial = evaluation.prepare(source, learner)
    with waiting(COMPILING):
        warm_up(trial.settings)
    with progress("evaluate", len(trial.X)) as update:
        done = evaluation.run(trial, update)
        update(len(trial.X))
    with waiting("Summing up, with the best fixed linear predictor in hindsight ..."):
        found = evaluation.evaluate(trial, learner, done, window=window, regret=regret, command=command)
    print_found(found, evaluation.render, json=as_json)


class _Table(NamedTuple):
    """What is read of a stream's events."""

    path: Path
    labels: Path | None
    label_delay: int
    """Milliseconds."""
    limit: int | None

    def read(self, stream: Stream) -> Events:
        from pipeline.sources.rows import read_rows

        return read_rows(self.path, stream, self.label_delay, self.labels).first(self.limit)


def _evaluate_stream(
    table: _Table, settings: Config, window: int | None, command: str, *, as_json: bool
) -> None:
    """Evaluate a configuration on the table of a stream's events: the pipeline runs without Kafka."""
    import msgspec

    from pipeline.model.cost import cost_warning
    from pipeline.model.factory import ModelFactory
    from pipeline.sources.schedule import order_of
    from pipeline.tools import evaluate as evaluation
    from pipeline.tools.report import render
    from pipeline.tools.terminal import COMPILING, notice, progress, show, waiting

    settings = evaluation.without_schemas(settings)
    with waiting(f"Reading {table.path} ..."):
        events = table.read(settings.stream)
        factory = ModelFactory(settings)
    if events.taken_for:
        notice(f"note: {events.taken_for}")
    if settings.stream.tables:
        names = ", ".join(settings.stream.tables)
        notice(f"note: the rows of {names} come from Kafka. Here no entity has a row")
    if (warning := cost_warning(factory.learners)) is not None:
        notice(f"warning: {warning}")
    with waiting(COMPILING):
        factory.warm_up()
    with progress("evaluate", len(order_of(events))) as update:
        done = evaluation.run_table(events, settings, factory, window=window, progress=update)
    attempt = evaluation.Attempt(command, factory.learner)
    advice = [*evaluation.advise_table(events, done.outcomes, settings, factory.target, attempt)]
    if as_json:
        rows = {"rows": events.rows, "skipped": events.skipped, "seconds": done.seconds}
        more = {"losses": msgspec.to_builtins(done.losses), "advice": msgspec.to_builtins(advice)}
        print_json(msgspec.to_builtins(done.report) | rows | more)
    else:
        typer.echo(describe_rows(events.rows, events.skipped))
        typer.echo(f"time           {done.seconds:.1f} s, {len(events) / done.seconds:,.0f} events/s\n")
        figures = render(done.report, settings.stream, where="written", has_times=events.has_times)
        show(figures, evaluation.render_advice(advice))
    if (late := events.later_than(settings.join.window)) > TOLERATED_LATE * len(events):
        notice(
            f"warning: {late:,} labels come more than join.window after their events and are "
            "not learned: set join.window to more"
        )
    if done.losses.too_many:
        raise DataError(evaluation.describe_losses(done.losses))
    if done.losses.lost:
        notice(f"note: {evaluation.describe_losses(done.losses)}")
