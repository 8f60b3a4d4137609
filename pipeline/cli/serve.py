"""`forks serve`: answer requests for scores with the models of the stream."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.logs import configure
from pipeline.cli.options import ConfigOptions, JsonLog, kafka_options
from pipeline.cli.signals import StopRequest, stop_on_signals

EPILOG = """
Examples:

    forks serve --config forks.toml --address 0.0.0.0:8080

    forks serve --log-scores scores.jsonl --json

    curl 127.0.0.1:8080/v1/score --json '{"user_id": 7, "items": [{"video_id": 1}]}'
"""


@kafka_options
def serve(
    options: ConfigOptions,
    group: Annotated[str | None, typer.Option(help="The consumer group of the workers.")] = None,
    address: Annotated[
        str | None, typer.Option(help="Where to listen, host:port or a port. Default: serve.address.")
    ] = None,
    log_scores: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Log each request and its scores there, for forks audit --scores. Rotated at 64 MiB.",
        ),
    ] = None,
    json: JsonLog = False,
) -> None:
    """Follow the workers' models and answer requests for scores, until SIGTERM or Ctrl-C; then exit with 0.

    A follower is outside the group and writes nothing to Kafka: run as many as requests need.
    """
    request = StopRequest()
    with stop_on_signals(request):
        configure(json=json)
        settings = options.including({"kafka.group": group, "serve.address": address}).load()

        from pipeline.serving.service import Service

        service = Service(settings, log_scores)
        request.pass_to(service.stop)
        service.run()
