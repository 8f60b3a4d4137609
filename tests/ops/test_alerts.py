"""Each alert on its fault, and none on a healthy run, by `promtool test rules`."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.monitoring.alerts import ALERTS
from ops.monitoring.files import FOLDER
from tests.support.prometheus import needs_promtool

MINUTES = 180
TARGET = 'job="forks", instance="a:9100"'
FOLLOWER = 'job="forks-serve", instance="b:8080"'
BEGIN = 40
"""The minute in which faults strike."""


def flat(value: float) -> str:
    """A series that stays."""
    return f"{value:g}x{MINUTES}"


def then(before: str, after: str) -> str:
    """A series that changes when the fault strikes: `before` for `BEGIN` minutes, then `after`."""
    return f"{before.format(BEGIN - 1)} {after.format(MINUTES - BEGIN)}"


def series(name: str, /, **labels: str) -> str:
    """The name of a series of the worker, with labels."""
    selected = ", ".join([TARGET, *(f'{key}="{value}"' for key, value in labels.items())])
    return f"{name}{{{selected}}}"


def followed(name: str, /, **labels: str) -> str:
    """The name of a series of the follower, with labels."""
    return series(name, **labels).replace(TARGET, FOLLOWER)


UP = series("up")
START = series("process_start_time_seconds")
RESTARTS = series("forks_session_restarts_total", reason="connection")
NOT_READY = series("forks_not_ready", reason="restoring")
STARTING = series("forks_not_ready", reason="starting")
COMMIT_AGE, SINCE_COMMIT = series("forks_commit_age_seconds"), series("forks_since_commit_seconds")
LAG = series("forks_input_lag_records", partition="0", input="interactions")
INPUT = series("forks_input_records_total", partition="0", topic="interactions")
CHAMPION = series("forks_window_mistakes_ratio", partition="0", learner="champion")
MEANS = series("forks_window_mistakes_ratio", partition="0", learner="baseline:running_means")
EVENTS = series("forks_window_events", partition="0")
ERROR = series("forks_window_mean_absolute_error", partition="0", learner="champion")
MEAN_ERROR = series("forks_window_mean_absolute_error", partition="0", learner="baseline:running_means")
DRIFT = series("forks_drift_alarms_total", partition="0")
LETTERS = series("forks_dead_letters_total", partition="0", reason="invalid")
HELD_BACK = series("forks_held_back", partition="0")
SNAPSHOT_AGE = series("forks_snapshot_age_seconds", partition="0")
BEHIND = series("forks_snapshot_outcomes_behind", partition="0")
EVICTED = series("forks_crowded_out_total", partition="0")
REGISTRY = series("forks_registry_away")
FOLLOWER_UP = followed("up")
FOLLOWER_START = followed("process_start_time_seconds")
FOLLOWER_RESTORES = followed("forks_serve_not_ready", reason="restoring")
FOLLOWER_BEHIND = followed("forks_serve_not_ready", reason="behind")
FOLLOWER_LAG = followed("forks_serve_lag_seconds", partition="0")
FOLLOWING = followed("forks_serve_partition_state", partition="0", state="following")
KNOWN_UNTIL = followed("forks_serve_as_of_seconds", partition="0")
REPLAYED_UNTIL = followed("forks_serve_as_of_seconds", partition="1")
ANSWERED = followed("forks_serve_requests_total", route="/v1/score", status="200")
REFUSED = followed("forks_serve_requests_total", route="/v1/score", status="422")
FAILED = followed("forks_serve_requests_total", route="/v1/score", status="503")
FAST = followed("forks_serve_request_duration_seconds_bucket", route="/v1/score", le="0.05")
SLOW = followed("forks_serve_request_duration_seconds_bucket", route="/v1/score", le="0.25")
ALL = followed("forks_serve_request_duration_seconds_bucket", route="/v1/score", le="+Inf")
UNLOGGED = followed("forks_serve_log_failures_total")

HEALTHY: Mapping[str, str] = {
    UP: flat(1),
    START: f"1000x{60} 5000x{MINUTES - 61}",  # one restart
    series("forks_worker_info", name="worker-0"): flat(1),
    RESTARTS: f"0x{20} 1x{40} 0x{MINUTES - 62}",  # one, and the process was started again
    NOT_READY: f"1x4 0x{MINUTES - 5}",
    STARTING: flat(0),
    COMMIT_AGE: f"0 12x{5} " + "0 1 " * ((MINUTES - 7) // 2),
    SINCE_COMMIT: f"0x{99} 0+60x{MINUTES - 100}",  # nothing comes any more, from then on
    LAG: f"20000-500x{39} 2000 0x{20} 800 0x{MINUTES - 62}",  # a backlog, and some peaks
    INPUT: f"0+6000x{99} 600000x{MINUTES - 100}",
    CHAMPION: f"0.5x{45} 0.26x{MINUTES - 46}",  # of few events at first
    MEANS: flat(0.27),
    EVENTS: f"0+100x{100} 10000x{MINUTES - 101}",
    ERROR: flat(4.1),
    MEAN_ERROR: flat(4.0),
    DRIFT: flat(0),
    LETTERS: f"0+20x{99} 2000x{MINUTES - 100}",
    HELD_BACK: f"0x{30} 1 0x{MINUTES - 32}",
    SNAPSHOT_AGE: "0 60 " * 50 + f"0+60x{MINUTES - 101}",
    BEHIND: "0 3000 " * 50 + f"0x{MINUTES - 101}",
    EVICTED: flat(0),
    REGISTRY: f"0x{30} 1x{3} 0x{MINUTES - 35}",
    FOLLOWER_UP: f"1x{60} 0 1x{MINUTES - 62}",  # one restart
    FOLLOWER_START: f"1000x{60} 5000x{MINUTES - 61}",
    followed("forks_serve_brokers_up"): flat(1),
    FOLLOWER_RESTORES: f"1x4 0x{55} 1x5 0x{MINUTES - 67}",
    FOLLOWER_BEHIND: f"0x{30} 1x{3} 0x{MINUTES - 35}",
    FOLLOWER_LAG: f"1x{30} 0+30x{3} 1x{MINUTES - 35}",  # a broker was away for a while
    FOLLOWING: f"0x4 1x{55} 0x5 1x{MINUTES - 67}",
    KNOWN_UNTIL: f"-5+60x{99} 5935x{MINUTES - 100}",  # event time, some seconds ago; then nothing comes
    REPLAYED_UNTIL: f"-900000+600x{MINUTES}",  # days ago throughout
    ANSWERED: f"0+6000x{99} 600000x{MINUTES - 100}",
    REFUSED: f"0+600x{99} 60000x{MINUTES - 100}",  # wrong requests are the client's affair
    FAILED: f"0+6x{99} 600x{MINUTES - 100}",
    FAST: f"0+6600x{99} 660000x{MINUTES - 100}",
    SLOW: f"0+6602x{99} 660200x{MINUTES - 100}",
    ALL: f"0+6606x{99} 660600x{MINUTES - 100}",
    UNLOGGED: flat(0),
}
"""A worker and a follower by minutes: they restore, catch up, work with normal disturbances, then nothing
comes and nobody asks."""

FAULTS: list[tuple[str, int, dict[str, str]]] = [
    ("ForksWorkerDown", 4, {UP: then("1x{}", "0x{}")}),
    ("ForksWorkerRestarts", 5, {START: then("1000x{}", "2000+60x{}")}),
    ("ForksSessionsFail", 10, {RESTARTS: then("0x{}", "0+1x{}")}),
    ("ForksWorkerNotReady", 12, {STARTING: then("0x{}", "1x{}")}),
    ("ForksCommitStuck", 3, {COMMIT_AGE: then("0x{}", "31+60x{}")}),
    (
        "ForksCommitStuck",  # transactions are begun again and again
        8,
        {SINCE_COMMIT: then("1x{}", "60+60x{}"), LAG: then("0x{}", "900x{}"), COMMIT_AGE: flat(10)},
    ),
    (
        "ForksPartitionStuck",
        23,
        {LAG: then("0x{}", "7x{}"), INPUT: then("0+6000x{}", "234000x{}"), LETTERS: flat(0)},
    ),
    ("ForksLagGrows", 25, {LAG: then("0x{}", "500+500x{}"), INPUT: f"0+6000x{MINUTES}"}),
    ("ForksWorseThanRunningMeans", 32, {CHAMPION: then("0.26x{}", "0.3x{}"), EVENTS: flat(10_000)}),
    (
        "ForksWorseThanRunningMeans",
        32,
        {ERROR: then("4x{}", "4.3x{}"), CHAMPION: flat(0.26), EVENTS: flat(10_000)},
    ),
    ("ForksDrift", 2, {DRIFT: then("0x{}", "1x{}")}),
    ("ForksDeadLetters", 11, {LETTERS: then("0x{}", "0+600x{}")}),
    ("ForksPartitionHeldBack", 4, {HELD_BACK: then("0x{}", "1x{}")}),
    ("ForksPartitionHeldBack", 6, {HELD_BACK: f"0x{BEGIN - 1} " + "1 0 " * 70}),
    ("ForksSnapshotsStale", 22, {SNAPSHOT_AGE: then("30x{}", "60+60x{}"), BEHIND: then("9x{}", "0+900x{}")}),
    ("ForksPredictionsCrowdedOut", 3, {EVICTED: then("0x{}", "0+5x{}")}),
    ("ForksRegistryAway", 7, {REGISTRY: then("0x{}", "1x{}")}),
    ("ForksFollowerDown", 4, {FOLLOWER_UP: then("1x{}", "0x{}")}),
    ("ForksFollowerRestarts", 5, {FOLLOWER_START: then("1000x{}", "2000+60x{}")}),
    (
        "ForksFollowerNotReady",
        12,
        {FOLLOWER_RESTORES: then("0x{}", "1x{}"), FOLLOWER_BEHIND: flat(0), FOLLOWING: then("1x{}", "0x{}")},
    ),
    ("ForksFollowerLags", 8, {FOLLOWER_LAG: then("1x{}", "0+60x{}"), FOLLOWER_BEHIND: then("0x{}", "1x{}")}),
    ("ForksModelsStale", 22, {KNOWN_UNTIL: f"-5+60x{BEGIN - 1} {60 * BEGIN - 65}x{MINUTES - BEGIN}"}),
    ("ForksScoresFail", 8, {FAILED: then("0x{}", "0+200x{}")}),
    (
        "ForksScoresSlow",
        14,
        {FAST: then("0+6606x{}", "257634+6400x{}"), SLOW: f"0+6606x{MINUTES}", ALL: f"0+6606x{MINUTES}"},
    ),
    ("ForksScoreLogFails", 2, {UNLOGGED: then("0x{}", "1x{}")}),
]
"""The alert, minutes within which it has to fire, and what the fault changes of a healthy run."""


def fired(folder: Path, planted: Mapping[str, str], minute: int, expected: set[str]) -> None:
    """Check which alerts were firing up to a minute."""
    ever = f'count by (alertname) (count_over_time(ALERTS{{alertstate="firing"}}[{minute}m]))'
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(expected)]
    test: dict[str, Any] = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in planted.items()],
        "promql_expr_test": [{"expr": ever, "eval_time": f"{minute}m", "exp_samples": samples}],
    }
    rules = str(FOLDER / "prometheus" / "alerts.yml")
    document = {"rule_files": [rules], "evaluation_interval": "1m", "tests": [test]}
    path = folder / "test.yml"
    path.write_text(yaml.safe_dump(document))
    command = ["promtool", "test", "rules", str(path)]
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


@needs_promtool
def test_no_alert_fires_on_a_healthy_run(tmp_path: Path) -> None:
    fired(tmp_path, HEALTHY, MINUTES - 1, set())


@needs_promtool
@pytest.mark.parametrize(("alert", "within", "changes"), FAULTS)
def test_an_alert_fires_on_its_fault_and_no_other_does(
    alert: str, within: int, changes: dict[str, str], tmp_path: Path
) -> None:
    assert changes.keys() <= HEALTHY.keys()
    fired(tmp_path, {**HEALTHY, **changes}, BEGIN - 1, set())
    fired(tmp_path, {**HEALTHY, **changes}, BEGIN + within, {alert})


def test_every_alert_has_a_fault() -> None:
    assert {alert for alert, *_ in FAULTS} == {alert.name for alert in ALERTS}
