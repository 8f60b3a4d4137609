"""Whether a worker is ready, and whether it is alive: rules over what it has last said of itself.

The worker's loop only notes what it does. The rules compare that with the clock when somebody asks, in
another thread, so that a loop that hangs is noticed without its help.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from pipeline.config.settings import Worker

COMMIT_LIMIT: Final = 15.0
"""Seconds that a transaction may take."""
RESTORE_LIMIT: Final = 20.0
"""Seconds within which a restore has to read something."""
LOOP_LIMIT: Final = 20.0
"""Seconds within which the loop of a ready worker comes round."""
FAILURE_MEMORY: Final = 60.0
"""Seconds after which a failed session that no commit has followed is forgiven: there may be nothing to
commit."""
STOOD_STILL: Final = 120.0
"""Seconds after which a loop that has not come round is taken for dead, at least: see `alive_limit`."""


class Restore(NamedTuple):
    """A restore that is under way."""

    records_left: int
    progress: float
    """When it last read something, by the monotonic clock, as all times here."""


class Failure(NamedTuple):
    """The end of a session with an error."""

    reason: str
    """The class of the error."""
    text: str
    at: float


class Vitals(NamedTuple):
    """What a worker has last said of itself. Replaced as a whole, never changed."""

    beat: float
    """When the loop came round last."""
    connected: bool = False
    """Whether a session is under way, with its transactions initialised."""
    assigned: tuple[int, ...] | None = None
    """The partitions; None until the group has assigned some, or none."""
    restoring: Mapping[int, Restore] = MappingProxyType({})
    commit_since: float | None = None
    """When the transaction under way began."""
    last_commit: float | None = None
    last_failure: Failure | None = None


class Reason(msgspec.Struct, frozen=True):
    """Why a worker is not ready."""

    code: str
    """One of `CODES`."""
    text: str


CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "starting": "No session is under way: the brokers are asked to begin one",
        "unassigned": "The group has not assigned partitions yet",
        "restoring": "A partition is being restored",
        "restore_stalled": f"A restore has read nothing for {RESTORE_LIMIT:.0f} s",
        "commit_stalled": f"A transaction has taken more than {COMMIT_LIMIT:.0f} s",
        "session_failed": "The last session ended with an error, and nothing was committed since: for "
        f"{FAILURE_MEMORY:.0f} s",
        "loop_stalled": f"The loop has not come round for {LOOP_LIMIT:.0f} s",
    }
)
"""Why a worker may not be ready."""


def not_ready(vitals: Vitals, now: float) -> list[Reason]:
    """Return why a worker is not ready; nothing if it is.

    Examples
    --------
    >>> not_ready(Vitals(10.0, connected=True, assigned=(0, 1)), 12.0)
    []
    >>> for reason in not_ready(Vitals(10.0, connected=True, assigned=(0,), commit_since=9.0), 40.0):
    ...     print(reason.code, "-", reason.text)
    commit_stalled - the transaction under way began 31 s ago
    loop_stalled - the loop came round 30 s ago
    """
    found, failure = [], vitals.last_failure
    if not vitals.connected:
        why = "" if failure is None else f"; the last session ended with {failure.text}"
        found.append(Reason("starting", f"no session with the brokers yet{why}"))
    elif vitals.assigned is None:
        found.append(Reason("unassigned", "the group has not assigned partitions yet"))
    for number, restore in sorted(vitals.restoring.items()):
        left = f"{restore.records_left:,} records left" if restore.records_left else "begun"
        found.append(Reason("restoring", f"partition {number} is being restored: {left}"))
        if (silence := now - restore.progress) > RESTORE_LIMIT:
            found.append(
                Reason("restore_stalled", f"partition {number}: nothing was read for {silence:.0f} s")
            )
    if vitals.commit_since is not None and (age := now - vitals.commit_since) > COMMIT_LIMIT:
        found.append(Reason("commit_stalled", f"the transaction under way began {age:.0f} s ago"))
    if (
        vitals.connected
        and failure is not None
        and now - failure.at < FAILURE_MEMORY
        and (vitals.last_commit or 0.0) < failure.at
    ):
        text = f"the last session ended with {failure.text}, and nothing was committed since"
        found.append(Reason("session_failed", text))
    if (silence := now - vitals.beat) > LOOP_LIMIT:
        found.append(Reason("loop_stalled", f"the loop came round {silence:.0f} s ago"))
    return found


def alive_limit(worker: Worker) -> float:
    """Return the seconds after which a loop that has not come round is taken for dead.

    The longest that it may wait is for a snapshot and a transaction that both take their whole timeout, and
    for the end of that transaction: see `pipeline.kafka.clients.group_consumer`.

    Examples
    --------
    >>> alive_limit(Worker()), alive_limit(Worker(transaction_timeout="60s"))
    (120.0, 480.0)
    """
    return max(STOOD_STILL, 8 * worker.transaction_timeout / 1000)


def alive(vitals: Vitals, now: float, limit: float) -> bool:
    """Return whether the loop has come round within the limit, in seconds."""
    return now - vitals.beat <= limit
