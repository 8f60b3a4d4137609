"""The dashboard of followers."""

from __future__ import annotations

from typing import Final

from ops.monitoring.panels import FOLLOWERS, Dashboard, Panel, Query, gauge, quantiles, rate

JOB: Final = FOLLOWERS.selector
SCORES: Final = f'{{job=~"${FOLLOWERS.variable}", route="/v1/score"}}'
"""Selects requests for scores, of the chosen jobs."""
OF_FOLLOWER: Final = "{{instance}} partition {{partition}}"
BY_PARTITION: Final = "instance, partition"

SERVING: Final = Dashboard(
    "serving",
    "Forks: serving",
    "Are requests for scores answered, fast and by models that are up to date?",
    (
        Panel(
            "Requests",
            "Answered requests for scores of each follower. Autoscaling goes by them.",
            "reqps",
            (
                Query(
                    f"sum by (instance) (rate(forks_serve_requests_total{SCORES}[$__rate_interval]))",
                    "{{instance}}",
                ),
            ),
        ),
        Panel(
            "Answers by status",
            "Of all paths. 4xx are wrong requests, 5xx those that a follower could not answer.",
            "reqps",
            (rate("forks_serve_requests_total", "route, status", "{{route}} {{status}}", FOLLOWERS),),
        ),
        Panel(
            "Time to answer",
            "Time from the headers of a request for scores to the end of its answer.",
            "s",
            tuple(
                Query(
                    f"histogram_quantile({share}, sum by (le) "
                    f"(rate(forks_serve_request_duration_seconds_bucket{SCORES}[$__rate_interval])))",
                    text,
                )
                for share, text in ((0.5, "median"), (0.99, "99 %"))
            ),
        ),
        Panel(
            "Requests under way",
            "Beyond serve.max_concurrency requests are refused with 503.",
            "short",
            (gauge("forks_serve_requests_under_way", "instance", "{{instance}}", "sum", FOLLOWERS),),
        ),
        Panel(
            "Candidates",
            "Candidates that were scored, and those with an id of which the model remembers no label.",
            "cps",
            (
                Query(f"sum(rate(forks_serve_candidates_sum{JOB}[$__rate_interval]))", "all"),
                Query(f"sum(rate(forks_serve_unknown_candidates_total{JOB}[$__rate_interval]))", "unknown"),
            ),
        ),
        Panel(
            "Candidates of a user",
            "Candidates that were scored together.",
            "short",
            quantiles("forks_serve_candidates", jobs=FOLLOWERS),
        ),
        Panel(
            "Lag in outcomes",
            "Outcomes that are committed and not yet learned, at most.",
            "short",
            (gauge("forks_serve_lag_outcomes", BY_PARTITION, OF_FOLLOWER, jobs=FOLLOWERS),),
        ),
        Panel(
            "Lag in seconds",
            "Time since a model had learned all that was committed. Beyond serve.max_lag a follower is not "
            "ready.",
            "s",
            (gauge("forks_serve_lag_seconds", BY_PARTITION, OF_FOLLOWER, jobs=FOLLOWERS),),
        ),
        Panel(
            "Age of models",
            "From the event time that a model knows to now. It grows without harm while nothing happens in "
            "the stream, and is large during a replay.",
            "s",
            (Query(f"time() - max by ({BY_PARTITION}) (forks_serve_as_of_seconds{JOB})", OF_FOLLOWER),),
        ),
        Panel(
            "Age of answers",
            "From the event time that the model knew to the answer.",
            "s",
            quantiles("forks_serve_answer_age_seconds", jobs=FOLLOWERS),
        ),
        Panel(
            "Outcomes learned",
            "A follower learns what the workers commit.",
            "cps",
            (gauge("forks_serve_folds_per_second", "instance", "{{instance}}", "sum", FOLLOWERS),),
        ),
        Panel(
            "Partitions by state",
            "Each follower should follow all partitions.",
            "short",
            (
                gauge(
                    "forks_serve_partition_state",
                    "instance, state",
                    "{{instance}} {{state}}",
                    "sum",
                    FOLLOWERS,
                ),
            ),
        ),
        Panel(
            "Not ready",
            "1 for each reason why a follower is not ready.",
            "short",
            (
                Query(
                    f"max by (instance, reason) (forks_serve_not_ready{JOB}) > 0", "{{instance}} {{reason}}"
                ),
            ),
        ),
        Panel(
            "Restore: records left",
            "Records still to be read while a partition is restored.",
            "short",
            (gauge("forks_serve_restore_records_left", BY_PARTITION, OF_FOLLOWER, jobs=FOLLOWERS),),
        ),
        Panel(
            "Processor cores",
            "Cores in use; a follower uses little more than one.",
            "short",
            (Query(f"rate(process_cpu_seconds_total{JOB}[$__rate_interval])", "{{instance}}"),),
        ),
        Panel(
            "Memory",
            "Resident memory of each follower.",
            "bytes",
            (Query(f"process_resident_memory_bytes{JOB}", "{{instance}}"),),
        ),
    ),
    FOLLOWERS,
)
