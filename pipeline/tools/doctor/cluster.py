"""Checks of the brokers: reachable, settings, topics, rights, clock, state."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from pipeline.config.settings import Config, Join, Worker
from pipeline.config.topics import LEAST_OUTPUT, Topics, topics_of
from pipeline.errors import ForksError
from pipeline.kafka.access.connection import Admin
from pipeline.kafka.access.missing_rights import missing_rights
from pipeline.kafka.access.rights import Role, rights
from pipeline.kafka.broker_facts import broker_settings, newest_timestamp, topic_settings
from pipeline.kafka.topics import Needs, check, existing_topics, needs_of
from pipeline.tools.doctor.check import Check, worst

WEEK: Final = 10_080
"""Minutes for which offsets are kept by default."""
AHEAD: Final = 5_000
"""Milliseconds by which records may be ahead of this machine's clock without a warning."""
NAMES: Final = ("broker settings", "rights", "topics", "message size", "clock", "state")
"""The checks that need a broker, in their order."""


def check_cluster(
    config: Config, failure_text: Callable[[Exception], str | None], *, usable: bool
) -> list[Check]:
    """Check the brokers and what they have.

    Parameters
    ----------
    config
        The whole configuration.
    failure_text
        Returns what a client's error says; None for an error of the program.
    usable
        Whether a worker can start with the configuration on this machine, as the check of the state does.

    Returns
    -------
    list of Check
        One for the connection, and one for each of `NAMES`.
    """
    try:
        client = Admin(config.kafka)
    except ForksError as error:
        reason = "no broker answers"
        return [Check("broker", "failed", reason, str(error)), *skipped(NAMES, reason)]
    brokers = len(client.list_topics(timeout=10.0).brokers)
    checks = [Check("broker", "ok", f"{brokers} answer at {config.kafka.bootstrap}")]
    topics = topics_of(config)
    steps: tuple[Callable[[], Check], ...] = (
        lambda: check_broker_settings(config.worker, broker_settings(client)),
        lambda: _rights(client, config, topics),
        lambda: _topics(client, topics, needs_of(config, topics)),
        lambda: _message_size(client, topics),
        lambda: check_clock(newest_timestamp(client, topics.inputs), config.join, time.time() * 1000),
        lambda: _state(config) if usable else Check("state", "skipped", "a worker cannot start here"),
    )
    for name, step in zip(NAMES, steps, strict=True):
        try:
            checks.append(step())
        except Exception as error:  # what a check raises is its result, unless it is a fault of the program
            text = str(error) if isinstance(error, ForksError) else failure_text(error)
            if text is None:
                raise
            checks.append(Check(name, "failed", text, "see what the broker says"))
    return checks


def skipped(names: tuple[str, ...], reason: str) -> list[Check]:
    """Return checks that could not be made."""
    return [Check(name, "skipped", reason) for name in names]


def check_broker_settings(worker: Worker, settings: dict[str, str] | None) -> Check:
    """Check what the brokers' settings mean for a worker.

    Parameters
    ----------
    worker
        The timeouts of workers.
    settings
        Those of a broker; None if they may not be seen.
    """
    name = "broker settings"
    if settings is None:
        return Check(name, "skipped", "DescribeConfigs on the cluster is denied to this client")
    found = []
    if (most := int(settings["transaction.max.timeout.ms"])) < worker.transaction_timeout:
        text = f"transaction.max.timeout.ms is {most}, below worker.transaction_timeout"
        remedy = f"raise it to {worker.transaction_timeout}, or lower worker.transaction_timeout"
        found.append(Check(name, "failed", text, remedy))
    low, high = (int(settings[f"group.{end}.session.timeout.ms"]) for end in ("min", "max"))
    if not low <= worker.session_timeout <= high:
        text = f"sessions may last {low} to {high} ms, and worker.session_timeout is {worker.session_timeout}"
        found.append(Check(name, "failed", text, "set worker.session_timeout to a value between them"))
    if (minutes := int(settings["offsets.retention.minutes"])) <= WEEK:
        text = f"offsets.retention.minutes is {minutes}: offsets of a group that is away for longer are lost"
        found.append(Check(name, "warning", text, "raise it, say to 525600"))
    return worst(found, name, "timeouts and retention of offsets suit the configuration")


def check_clock(newest: int | None, join: Join, now: float) -> Check:
    """Check this machine's clock against the times of records: none comes from the future.

    Parameters
    ----------
    newest
        The newest timestamp of the inputs' records, in milliseconds; None if there are none.
    join
        How far ahead of this clock a message may be.
    now
        The time of this machine, in milliseconds.

    Returns
    -------
    Check
        Failed if a worker would dead-letter records as `future`. A clock that is ahead cannot be recognised.
    """
    if newest is None:
        return Check("clock", "skipped", "the inputs have no records to compare it with")
    ahead = newest - now
    if ahead <= AHEAD:
        return Check("clock", "ok", "no record of the inputs is ahead of it")
    found = f"a record of the inputs is {ahead / 1000:,.0f} s ahead of this machine"
    remedy = "set the clocks of this machine and of producers by NTP"
    return Check("clock", "failed" if ahead > join.max_ahead else "warning", found, remedy)


def _state(config: Config) -> Check:
    from pipeline.tools.doctor.state import check_state  # noqa: PLC0415 - the learner takes a second

    return check_state(config)


def _rights(client: Admin, config: Config, topics: Topics) -> Check:
    missing = missing_rights(client, rights(Role.WORKER, config, topics))
    checks = [Check("rights", "failed", f"missing: {right}") for right in missing]
    if not checks:
        return Check("rights", "ok", "no right of a worker on topics and group is denied")
    remedy = "grant them with `forks topics acls --principal User:NAME --role worker --create`"
    return Check("rights", "failed", worst(checks, "rights", "").found, remedy)


def _topics(client: Admin, topics: Topics, needs: Needs) -> Check:
    checks = [
        Check("topics", "failed" if each.fatal else "warning", f"{each.topic}: {each.what}", each.remedy)
        for each in check(client, topics, needs)
    ]
    return worst(checks, "topics", f"all {len(topics.all)} are as they should be")


def _message_size(client: Admin, topics: Topics) -> Check:
    name = "message size"
    existing = existing_topics(client, topics.outputs)
    if not existing:
        return Check(name, "skipped", "there are no outputs yet")
    sizes = {topic: int(topic_settings(client, topic)["max.message.bytes"]) for topic in existing}
    checks = [
        Check(
            name,
            "failed",
            f"{topic}: max.message.bytes is {size}",
            f"set it to {2**20} or more: snapshots and large records do not fit",
        )
        for topic, size in sizes.items()
        if size < LEAST_OUTPUT
    ]
    return worst(checks, name, f"the outputs take {min(sizes.values()):,} bytes or more")
