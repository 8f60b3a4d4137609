"""The program `forks`: one module for each command; here they are put together.

A command's module declares its options and help, and imports what does the work only when the command runs.
So help and shell completion load little more than Typer.
"""

from __future__ import annotations

import typer

from pipeline.cli import (
    audit,
    broker,
    checkpoint,
    config,
    demo,
    doctor,
    evaluate,
    export,
    inspect,
    promote,
    rebuild,
    redrive,
    replay,
    report,
    run,
    serve,
    stream,
    synth,
    top,
    topics,
)
from pipeline.cli.command import Command, LoggingCommand
from pipeline.cli.failures import report_failures
from pipeline.cli.logs import configure

app = typer.Typer(
    help="A learner that lives in a Kafka stream: predicts at once, joins labels later, learns exactly once.",
    epilog="Exit codes: 0 done, 1 a check failed, 2 wrong setting or option, 3 no broker, 4 wrong topics, "
    "5 state does not fit, 6 wrong input file, 7 replaced by another worker, 8 a right is denied, "
    "9 no schema registry, 10 a folder cannot be written, 130 stopped by Ctrl-C.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=Command, epilog=demo.EPILOG)(demo.demo)
app.command(cls=LoggingCommand, epilog=run.EPILOG)(run.run)
app.command(cls=LoggingCommand, epilog=serve.EPILOG)(serve.serve)
app.command(cls=Command, epilog=top.EPILOG)(top.top)
app.command(cls=Command, epilog=doctor.EPILOG)(doctor.doctor)
app.add_typer(broker.app, name="broker")
app.add_typer(topics.app, name="topics")
app.add_typer(stream.app, name="stream")
app.add_typer(config.app, name="config")
app.command(cls=Command, epilog=replay.EPILOG)(replay.replay)
app.command(cls=Command, epilog=synth.EPILOG)(synth.synth)
app.command(cls=Command, epilog=inspect.EPILOG)(inspect.inspect)
app.command(cls=Command, epilog=export.EPILOG)(export.export)
app.command(cls=Command, epilog=report.EPILOG)(report.report)
app.add_typer(checkpoint.app, name="checkpoint")
app.command(cls=Command, epilog=rebuild.EPILOG)(rebuild.rebuild)
app.command(cls=Command, epilog=redrive.EPILOG)(redrive.redrive)
app.command(cls=Command, epilog=promote.EPILOG)(promote.promote)
app.command(cls=Command, epilog=audit.EPILOG)(audit.audit)
app.command(cls=Command, epilog=evaluate.EPILOG)(evaluate.evaluate)


def main() -> None:
    """Run `forks`, and report errors that a user can act on as one line on standard error."""
    with report_failures():
        app(obj=configure)
