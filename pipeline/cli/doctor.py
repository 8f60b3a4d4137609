"""`forks doctor`: check everything that a worker needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from pipeline.cli.options import ConfigOptions, Json, group_options
from pipeline.cli.output import print_json
from pipeline.errors import ForksError

if TYPE_CHECKING:
    from pipeline.config.settings import Config
    from pipeline.tools.doctor.check import Check

EPILOG = "Example: forks doctor --config forks.toml --json"


@group_options
def doctor(*, options: ConfigOptions, json: Json = False) -> None:
    """Check this machine, the configuration, the brokers and the topics; nothing is changed.

    It says what was found and what to do. It ends with 1 if a check failed, and with 0 if there are only
    warnings.
    """
    from pipeline.tools.doctor.cluster import NAMES, check_cluster, skipped
    from pipeline.tools.doctor.machine import (
        check_compiled_code,
        check_disk,
        check_extras,
        check_java,
        check_memory,
    )

    compiled = check_compiled_code()
    settings, of_config = _configuration(options, usable=compiled.status != "failed")
    checks = [of_config, check_java(), check_extras(settings), compiled]
    if settings is None:
        checks += skipped(("memory", "disk", "broker", *NAMES), "the configuration cannot be read")
    else:
        usable = of_config.status != "failed" and compiled.status != "failed"
        checks += [
            check_memory(settings.join, settings.worker),
            check_disk(settings.join),
            *check_cluster(settings, _client_error, usable=usable),
        ]
    ok = all(check.status != "failed" for check in checks)
    if json:
        print_json({"ok": ok, "checks": checks})
    else:
        for check in checks:
            typer.echo(f"{check.status:8} {check.name}: {check.found}")
            if check.remedy and check.status != "ok":
                typer.echo(f"         {check.remedy}")
    if not ok:
        raise typer.Exit(ForksError.exit_code)


def _configuration(options: ConfigOptions, *, usable: bool) -> tuple[Config | None, Check]:
    """Load the configuration and what it names; `usable` tells whether the learner can be imported."""
    from pipeline.tools.doctor.check import Check

    settings = None
    try:
        settings = options.load()
        if usable:
            from pipeline.config.topics import topics_of
            from pipeline.kafka.registry import decoders_of
            from pipeline.model.cost import cost_warning
            from pipeline.model.factory import ModelFactory

            decoders_of(topics_of(settings))
            if (warning := cost_warning(ModelFactory(settings).learners)) is not None:
                return settings, Check("configuration", "warning", warning)
    except ForksError as error:
        return settings, Check("configuration", "failed", str(error), "correct what it names")
    return settings, Check("configuration", "ok", "a worker can start with it")


def _client_error(error: Exception) -> str | None:
    from confluent_kafka import KafkaException

    from pipeline.kafka.access.errors import error_text

    return error_text(error) if isinstance(error, KafkaException) else None
