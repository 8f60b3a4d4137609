from __future__ import annotations

import pytest

from pipeline.config.settings import Worker
from pipeline.monitoring.readiness import (
    CODES,
    COMMIT_LIMIT,
    FAILURE_MEMORY,
    LOOP_LIMIT,
    RESTORE_LIMIT,
    Failure,
    Restore,
    Vitals,
    alive,
    alive_limit,
    not_ready,
)

NOW = 1_000.0
GOOD = Vitals(NOW, connected=True, assigned=(0,), last_commit=NOW - 1.0)
FAILED = Failure("timeout", "_TIMED_OUT: no answer", NOW - 2.0)


def codes(vitals: Vitals) -> list[str]:
    return [reason.code for reason in not_ready(vitals, NOW)]


@pytest.mark.parametrize(
    ("vitals", "expected"),
    [
        (GOOD, []),
        (GOOD._replace(assigned=()), []),
        (GOOD._replace(connected=False), ["starting"]),
        (GOOD._replace(assigned=None), ["unassigned"]),
        (GOOD._replace(restoring={0: Restore(9, NOW)}), ["restoring"]),
        (
            GOOD._replace(restoring={0: Restore(9, NOW - RESTORE_LIMIT - 1)}),
            ["restoring", "restore_stalled"],
        ),
        (GOOD._replace(commit_since=NOW - COMMIT_LIMIT + 1), []),
        (GOOD._replace(commit_since=NOW - COMMIT_LIMIT - 1), ["commit_stalled"]),
        (GOOD._replace(last_failure=FAILED), []),
        (GOOD._replace(last_failure=FAILED, last_commit=NOW - 3.0), ["session_failed"]),
        (GOOD._replace(last_failure=FAILED, last_commit=None), ["session_failed"]),
        (GOOD._replace(last_failure=FAILED._replace(at=NOW - FAILURE_MEMORY), last_commit=None), []),
        (GOOD._replace(last_failure=FAILED, connected=False), ["starting"]),
        (GOOD._replace(beat=NOW - LOOP_LIMIT - 1), ["loop_stalled"]),
    ],
)
def test_each_reason_is_given_where_it_holds_and_only_there(vitals: Vitals, expected: list[str]) -> None:
    assert codes(vitals) == expected


def test_every_reason_shows_within_30_s_and_is_documented() -> None:
    assert max(COMMIT_LIMIT, RESTORE_LIMIT, LOOP_LIMIT) <= 25.0
    assert set(CODES) == {
        "starting",
        "unassigned",
        "restoring",
        "restore_stalled",
        "commit_stalled",
        "session_failed",
        "loop_stalled",
    }


def test_texts_say_what_and_how_long() -> None:
    stalled = not_ready(GOOD._replace(restoring={3: Restore(1_200, NOW - 60)}), NOW)
    assert [reason.text for reason in stalled] == [
        "partition 3 is being restored: 1,200 records left",
        "partition 3: nothing was read for 60 s",
    ]
    [starting] = not_ready(GOOD._replace(connected=False, last_failure=FAILED), NOW)
    assert starting.text.endswith("the last session ended with _TIMED_OUT: no answer")


def test_only_a_loop_that_stands_still_is_dead() -> None:
    limit = alive_limit(Worker())
    trouble = GOOD._replace(
        connected=False, restoring={0: Restore(9, 0.0)}, commit_since=0.0, last_failure=FAILED
    )
    assert alive(trouble, NOW, limit)
    assert alive(trouble._replace(beat=NOW - limit), NOW, limit)
    assert not alive(GOOD._replace(beat=NOW - limit - 1), NOW, limit)
