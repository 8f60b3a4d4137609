"""The program `forks`: one module a command, and here only how they hang together."""

from __future__ import annotations

import typer

from pipeline.cli import (
    audit,
    broker,
    checkpoint,
    demo,
    evaluate,
    inspect,
    promote,
    rebuild,
    replay,
    report,
    run,
    synth,
    topics,
)
from pipeline.cli.failures import report_failures
from pipeline.cli.logs import configure

app = typer.Typer(
    help="A learner that lives in a Kafka stream: predicts at once, joins labels later, learns exactly once.",
    epilog="Exit codes: 0 done, 1 a check failed, 2 wrong setting or option, 3 no broker, 4 wrong topics, "
    "5 state does not fit, 6 wrong input file, 7 replaced by another worker, 130 stopped by Ctrl-C.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=demo.EPILOG)(demo.demo)
app.command(epilog=run.EPILOG)(run.run)
app.add_typer(broker.app, name="broker")
app.add_typer(topics.app, name="topics")
app.command(epilog=replay.EPILOG)(replay.replay)
app.command(epilog=synth.EPILOG)(synth.synth)
app.command(epilog=inspect.EPILOG)(inspect.inspect)
app.command(epilog=report.EPILOG)(report.report)
app.add_typer(checkpoint.app, name="checkpoint")
app.command(epilog=rebuild.EPILOG)(rebuild.rebuild)
app.command(epilog=promote.EPILOG)(promote.promote)
app.command(epilog=audit.EPILOG)(audit.audit)
app.command(epilog=evaluate.EPILOG)(evaluate.evaluate)


def main() -> None:
    """Run `forks`, with errors that a user can act on as one line on standard error."""
    configure()
    with report_failures():
        app()
