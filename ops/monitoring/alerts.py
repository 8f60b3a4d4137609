"""The alerts, and the rules of Prometheus that they become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import yaml

RUNBOOK: Final = "docs/runbook.md"
"""Where the runbook is: a section for each alert, with its name."""
HEADER: Final = "# Made by python -m ops.monitoring from ops/monitoring/alerts.py.\n"

Severity: TypeAlias = Literal["critical", "warning"]


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert.

    Attributes
    ----------
    name
        Its name, and that of its section in the runbook.
    severity
        `critical` if nothing is predicted or no score answered, or soon nothing; else `warning`.
    expression
        A query that has a result while something is wrong.
    lasting
        How long that has to last.
    summary
        What is wrong, with labels and value in Prometheus' templates.
    """

    name: str
    severity: Severity
    expression: str
    lasting: str
    summary: str


LAG: Final = "max by (job, partition, input) (forks_input_lag_records)"
WORKER: Final = "{{ $labels.instance }}"
FOLLOWER: Final = "{{ $labels.instance }}"
PARTITION: Final = "Partition {{ $labels.partition }}"
MEANS: Final = 'learner=~"baseline:running_means?"'
SAME_WINDOW: Final = "ignoring (learner)"
SCORES: Final = 'forks_serve_requests_total{route="/v1/score"}'
FAILED_SCORES: Final = 'forks_serve_requests_total{route="/v1/score", status=~"5.."}'
SCORE_SECONDS: Final = 'forks_serve_request_duration_seconds_bucket{route="/v1/score"}'
MODEL_AGE: Final = "(time() - max by (job, partition) (forks_serve_as_of_seconds))"
FULL: Final = "and on (job, instance, partition) forks_window_events >= 5000"

ALERTS: Final = (
    Alert(
        "ForksWorkerDown",
        "critical",
        'up{job="forks"} == 0',
        "2m",
        f"{WORKER} does not answer scrapes",
    ),
    Alert(
        "ForksWorkerRestarts",
        "critical",
        "changes(process_start_time_seconds[15m]) >= 3"
        " and on (job, instance) count_over_time(forks_worker_info[15m])",
        "0m",
        f"{WORKER} was started again {{{{ $value }}}} times in 15 minutes",
    ),
    Alert(
        "ForksSessionsFail",
        "warning",
        "sum by (job, instance) (increase(forks_session_restarts_total[15m])) > 5",
        "0m",
        f'{WORKER} started over {{{{ $value | printf "%.0f" }}}} times in 15 minutes',
    ),
    Alert(
        "ForksWorkerNotReady",
        "critical",
        "max by (job, instance, reason) (forks_not_ready) == 1",
        "10m",
        f"{WORKER} is not ready: {{{{ $labels.reason }}}}",
    ),
    Alert(
        "ForksCommitStuck",
        "critical",
        "max by (job, instance) (forks_commit_age_seconds) > 30"
        " or max by (job, instance) (forks_since_commit_seconds) > 300"
        " and sum by (job, instance) (forks_input_lag_records) > 0",
        "1m",
        f"{WORKER} commits nothing since {{{{ $value | humanizeDuration }}}}",
    ),
    Alert(
        "ForksPartitionStuck",
        "critical",
        "max by (job, partition) (forks_input_lag_records) > 0"
        " and sum by (job, partition) (increase(forks_input_records_total[10m])) == 0",
        "10m",
        f"{PARTITION} has {{{{ $value }}}} records to process, and processes none",
    ),
    Alert(
        "ForksLagGrows",
        "warning",
        f"{LAG} > 1000 and deriv({LAG}[15m:1m]) > 0",
        "15m",
        f"{PARTITION} is {{{{ $value }}}} records behind in {{{{ $labels.input }}}}, and falls back further",
    ),
    Alert(
        "ForksWorseThanRunningMeans",
        "warning",
        f'(forks_window_mistakes_ratio{{learner="champion"}} - {SAME_WINDOW} '
        f"forks_window_mistakes_ratio{{{MEANS}}} > 0.02"
        f' or forks_window_mean_absolute_error{{learner="champion"}} / {SAME_WINDOW} '
        f"forks_window_mean_absolute_error{{{MEANS}}} - 1 > 0.05) {FULL}",
        "30m",
        f"{PARTITION}: {{{{ $value | humanizePercentage }}}} more errors than the running means make",
    ),
    Alert(
        "ForksDrift",
        "warning",
        "sum by (job, partition) (increase(forks_drift_alarms_total[1h])) > 0",
        "0m",
        f"{PARTITION}: the champion has begun to make more errors than the running means",
    ),
    Alert(
        "ForksDeadLetters",
        "warning",
        "sum by (job) (increase(forks_dead_letters_total[10m])) > 100"
        " and sum by (job) (increase(forks_dead_letters_total[10m]))"
        " > 0.05 * sum by (job) (increase(forks_input_records_total[10m]))",
        "5m",
        '{{ $value | printf "%.0f" }} records in 10 minutes could not be used, more than 5 % of all',
    ),
    Alert(
        "ForksPartitionHeldBack",
        "critical",
        "max by (job, partition) (max_over_time(forks_held_back[2m])) == 1",
        "3m",
        f"{PARTITION} is paused minute by minute, because of too many dead letters",
    ),
    Alert(
        "ForksSnapshotsStale",
        "warning",
        "max by (job, partition) (forks_snapshot_age_seconds) > 900"
        " and max by (job, partition) (forks_snapshot_outcomes_behind) > 0",
        "5m",
        f"{PARTITION} has had no snapshot for {{{{ $value | humanizeDuration }}}}",
    ),
    Alert(
        "ForksPredictionsCrowdedOut",
        "warning",
        "sum by (job, partition) (increase(forks_crowded_out_total[15m])) > 0",
        "0m",
        f"{PARTITION}: predictions expire before their time, because too many wait",
    ),
    Alert(
        "ForksRegistryAway",
        "critical",
        "max by (job, instance) (forks_registry_away) == 1",
        "5m",
        f"The schema registry does not answer {WORKER}",
    ),
    Alert(
        "ForksFollowerDown",
        "critical",
        'up{job="forks-serve"} == 0',
        "2m",
        f"The follower {FOLLOWER} does not answer scrapes",
    ),
    Alert(
        "ForksFollowerRestarts",
        "critical",
        "changes(process_start_time_seconds[15m]) >= 3"
        " and on (job, instance) count_over_time(forks_serve_brokers_up[15m])",
        "0m",
        f"The follower {FOLLOWER} was started again {{{{ $value }}}} times in 15 minutes",
    ),
    Alert(
        "ForksFollowerNotReady",
        "critical",
        'max by (job, instance, reason) (forks_serve_not_ready{reason!="behind"}) == 1',
        "10m",
        f"The follower {FOLLOWER} is not ready: {{{{ $labels.reason }}}}",
    ),
    Alert(
        "ForksFollowerLags",
        "warning",
        "forks_serve_lag_seconds > 60"
        ' and on (job, instance, partition) forks_serve_partition_state{state="following"} == 1',
        "5m",
        f"The follower {FOLLOWER} is {{{{ $value | humanizeDuration }}}} behind in partition "
        "{{ $labels.partition }}",
    ),
    Alert(
        "ForksModelsStale",
        "warning",
        # Not during a replay, whose events are old throughout, nor while nobody asks.
        f"{MODEL_AGE} > 900 and min_over_time({MODEL_AGE}[6h:1m]) < 300"
        f" and on (job) sum by (job) (rate({SCORES}[10m])) > 0",
        "5m",
        f"{PARTITION}: scores are asked for, and models know of nothing in the last "
        "{{ $value | humanizeDuration }}",
    ),
    Alert(
        "ForksScoresFail",
        "critical",
        f"sum by (job) (rate({FAILED_SCORES}[5m])) / sum by (job) (rate({SCORES}[5m])) > 0.01",
        "5m",
        "{{ $value | humanizePercentage }} of the requests for scores are answered with 5xx",
    ),
    Alert(
        "ForksScoresSlow",
        "warning",
        f"histogram_quantile(0.99, sum by (job, le) (rate({SCORE_SECONDS}[5m]))) > 0.1",
        "10m",
        "One request for scores in a hundred takes {{ $value | humanizeDuration }} or longer",
    ),
    Alert(
        "ForksScoreLogFails",
        "warning",
        "sum by (job, instance) (increase(forks_serve_log_failures_total[15m])) > 0",
        "0m",
        f'The follower {FOLLOWER} could not log {{{{ $value | printf "%.0f" }}}} answers in 15 minutes',
    ),
)


def rules_yaml(alerts: Sequence[Alert]) -> str:
    """Return the file of rules."""
    return _yaml({"groups": _groups(alerts)})


def prometheus_rule_yaml(alerts: Sequence[Alert]) -> str:
    """Return the same rules as a resource of the Prometheus operator."""
    kind = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule"}
    return _yaml(kind | {"metadata": {"name": "forks"}, "spec": {"groups": _groups(alerts)}})


def _groups(alerts: Sequence[Alert]) -> list[dict[str, Any]]:
    rules = [
        {
            "alert": each.name,
            "expr": each.expression,
            "for": each.lasting,
            "labels": {"severity": each.severity},
            "annotations": {"summary": each.summary, "runbook_url": f"{RUNBOOK}#{each.name.lower()}"},
        }
        for each in alerts
    ]
    return [{"name": "forks", "rules": rules}]


def _yaml(content: dict[str, Any]) -> str:
    return HEADER + str(yaml.safe_dump(content, sort_keys=False, width=1000))
