"""The dashboards. Each answers one question."""

from __future__ import annotations

from typing import Final

from ops.monitoring.panels import JOB, Dashboard, Panel, Query, gauge, quantiles, rate
from ops.monitoring.serving import SERVING

PARTITION: Final = "partition {{partition}}"
LEARNER: Final = "{{learner}}"
WEIGHTED: Final = f"on (job, instance, partition) group_left () forks_window_events{JOB}"
"""Weighs a window's figure with its number of events."""


def _mean_of_windows(name: str) -> Query:
    """Return the mean over the partitions' windows, each by its number of events."""
    present = f"{name}{JOB} * 0 + {WEIGHTED}"
    return Query(
        f"sum by (learner) ({name}{JOB} * {WEIGHTED}) / sum by (learner) ({present})",
        LEARNER,
    )


KEEPING_UP: Final = Dashboard(
    "keeping-up",
    "Forks: keeping up",
    "Do the workers keep up with their inputs, and what takes the time?",
    (
        Panel(
            "Records processed",
            "Committed records of the inputs.",
            "rps",
            (rate("forks_input_records_total", "topic", "{{topic}}"),),
        ),
        Panel(
            "Lag in records",
            "Records still to be processed. It should return to 0, or at least not grow.",
            "short",
            (gauge("forks_input_lag_records", "partition, input", f"{PARTITION} {{{{input}}}}"),),
        ),
        Panel(
            "Lag in event time",
            "From the newest event processed to now; 0 where nothing is left. Large during a replay.",
            "s",
            (gauge("forks_event_time_lag_seconds", "partition", PARTITION),),
        ),
        Panel(
            "From event to prediction",
            "Time from an event to the commit of its prediction. Large during a replay.",
            "s",
            quantiles("forks_prediction_latency_seconds"),
        ),
        Panel(
            "Stages of the loop",
            "Share of the time that the loop spends in each stage, summed over the workers. A worker that "
            "has time to spare has most of it in poll.",
            "percentunit",
            (rate("forks_stage_duration_seconds_sum", "stage", "{{stage}}"),),
        ),
        Panel(
            "Steps in a batch",
            "Large batches mean that there is a backlog.",
            "short",
            quantiles("forks_batch_steps"),
        ),
        Panel(
            "Records read ahead",
            "Bytes read and not yet processed, of each worker, and the limit.",
            "bytes",
            (
                gauge("forks_input_buffered_bytes", "instance", "{{instance}}", "sum"),
                Query(f"max(forks_buffer_limit_bytes{JOB})", "limit"),
            ),
        ),
        Panel(
            "Processor cores",
            "Cores in use; a worker uses little more than one.",
            "short",
            (Query(f"rate(process_cpu_seconds_total{JOB}[$__rate_interval])", "{{instance}}"),),
        ),
        Panel(
            "Readiness",
            "1 where a worker is ready, and 1 for each reason why one is not.",
            "short",
            (
                gauge("forks_ready", "instance", "{{instance}} ready"),
                Query(
                    f"max by (instance, reason) (forks_not_ready{JOB}) > 0",
                    "{{instance}} {{reason}}",
                ),
            ),
        ),
        Panel(
            "Restarts",
            "Starts of each worker's process, sessions that failed, and rebalances in the last 15 minutes.",
            "short",
            (
                Query(f"changes(process_start_time_seconds{JOB}[15m])", "{{instance}} process"),
                Query(
                    f"sum by (instance) (increase(forks_session_restarts_total{JOB}[15m]))",
                    "{{instance}} sessions",
                ),
                Query(
                    f"sum by (instance) (increase(forks_rebalances_total{JOB}[15m]))",
                    "{{instance}} rebalances",
                ),
            ),
        ),
    ),
)

QUALITY: Final = Dashboard(
    "quality",
    "Forks: quality",
    "Does the champion predict better than the challengers and the baselines?",
    (
        Panel(
            "Mistakes",
            "Share of wrong predictions over the last labelled events. The champion should be below the "
            "running means.",
            "percentunit",
            (_mean_of_windows("forks_window_mistakes_ratio"),),
        ),
        Panel(
            "Area under the ROC curve",
            "Mean over the partitions. Higher is better; 0.5 is chance.",
            "short",
            (_mean_of_windows("forks_window_auc"),),
        ),
        Panel(
            "Log loss",
            "Of learners whose scores are log-odds. Lower is better.",
            "short",
            (_mean_of_windows("forks_window_log_loss"),),
        ),
        Panel(
            "Calibration error",
            "How far probabilities are from what happens. Lower is better.",
            "percentunit",
            (_mean_of_windows("forks_window_calibration_error_ratio"),),
        ),
        Panel(
            "Absolute error",
            "Where numbers are predicted, in the unit of the labels. Lower is better.",
            "short",
            (_mean_of_windows("forks_window_mean_absolute_error"),),
        ),
        Panel(
            "Events in the window",
            "Labelled events that the figures are over: up to 10,000 of each partition since its restore.",
            "short",
            (gauge("forks_window_events", "partition", PARTITION),),
        ),
        Panel(
            "Evidence of drift",
            "Share of the threshold. At 1 there is an alarm, and evidence begins anew.",
            "percentunit",
            (
                Query(
                    f"max by (partition) (forks_drift_evidence{JOB} / forks_drift_threshold{JOB})", PARTITION
                ),
            ),
        ),
        Panel(
            "Alarms of drift",
            "Alarms in the last hour that the champion makes more errors than the running means.",
            "short",
            (Query(f"sum by (partition) (increase(forks_drift_alarms_total{JOB}[1h]))", PARTITION),),
        ),
        Panel(
            "Challengers: mistakes",
            "Share of wrong predictions of champion and challengers, where there are challengers.",
            "percentunit",
            (
                Query(
                    f"sum by (learner) (rate(forks_compared_mistakes_total{JOB}[$__rate_interval])) / "
                    f"sum by (learner) (rate(forks_compared_events_total{JOB}[$__rate_interval]))",
                    LEARNER,
                ),
            ),
        ),
        Panel(
            "Condition of the sketch",
            "Largest singular value over the smallest. Beyond 1e8 half of the digits are lost.",
            "short",
            (gauge("forks_sketch_condition", "partition, learner", f"{PARTITION} {LEARNER}"),),
        ),
    ),
)

JOINS: Final = Dashboard(
    "joins",
    "Forks: joins",
    "What becomes of predictions, labels and records that cannot be used?",
    (
        Panel(
            "Predictions",
            "Committed predictions.",
            "cps",
            (
                Query(
                    "sum by (partition) "
                    '(rate(forks_output_records_total{job=~"$job", topic="predictions"}[$__rate_interval]))',
                    PARTITION,
                ),
            ),
        ),
        Panel(
            "Outcomes by status",
            "Labelled ones had their label in time, expired ones had none.",
            "cps",
            (rate("forks_outcomes_total", "status", "{{status}}"),),
        ),
        Panel(
            "Share of predictions without label",
            "Expired outcomes among those labelled or expired.",
            "percentunit",
            (
                Query(
                    'sum(rate(forks_outcomes_total{job=~"$job", status="expired"}[$__rate_interval])) / '
                    'sum(rate(forks_outcomes_total{job=~"$job", '
                    'status=~"expired|labelled"}[$__rate_interval]))',
                    "expired",
                ),
            ),
        ),
        Panel(
            "Dead letters by reason",
            "Records that could not be used.",
            "cps",
            (rate("forks_dead_letters_total", "reason", "{{reason}}"),),
        ),
        Panel(
            "Dead letters of the minute",
            "Of each partition, and the limit at which it is held back.",
            "short",
            (
                gauge("forks_dead_letters_this_minute", "partition", PARTITION),
                Query(f"max(forks_dead_letters_per_minute_limit{JOB})", "limit"),
            ),
        ),
        Panel(
            "Duplicates and early labels",
            "Records that repeat one before, labels that came before their interaction, and predictions "
            "that expired before their time because too many waited.",
            "cps",
            (
                rate("forks_duplicates_total", "topic", "duplicate {{topic}}"),
                Query(
                    f"sum(rate(forks_labels_before_interaction_total{JOB}[$__rate_interval]))", "early labels"
                ),
                Query(f"sum(rate(forks_crowded_out_total{JOB}[$__rate_interval]))", "crowded out"),
            ),
        ),
        Panel(
            "Predictions that wait",
            "Predictions that wait for their label, and the limit of each partition.",
            "short",
            (
                gauge("forks_pending_predictions", "partition", PARTITION),
                Query(f"max(forks_pending_predictions_limit{JOB})", "limit"),
            ),
        ),
        Panel(
            "Labels that wait",
            "Labels that wait for their interaction.",
            "short",
            (gauge("forks_early_labels", "partition", PARTITION),),
        ),
    ),
)

STATE: Final = Dashboard(
    "state",
    "Forks: state and snapshots",
    "Are partitions restored and saved, and how large is what they hold?",
    (
        Panel(
            "Partitions by state",
            "All partitions of the topics should be running.",
            "short",
            (gauge("forks_partition_state", "state", "{{state}}", "sum"),),
        ),
        Panel(
            "Restore: records left",
            "Records still to be read while a partition is restored.",
            "short",
            (gauge("forks_restore_records_left", "partition", PARTITION),),
        ),
        Panel(
            "Duration of restores",
            "Mean time from the assignment of a partition to its first message, since the worker started.",
            "s",
            (
                Query(
                    f"sum by (instance) (forks_restore_duration_seconds_sum{JOB}) / "
                    f"sum by (instance) (forks_restore_duration_seconds_count{JOB})",
                    "{{instance}}",
                ),
            ),
        ),
        Panel(
            "Age of snapshots",
            "It grows without harm while no outcomes come.",
            "s",
            (gauge("forks_snapshot_age_seconds", "partition", PARTITION),),
        ),
        Panel(
            "Outcomes since the snapshot",
            "What a restart would learn again.",
            "short",
            (gauge("forks_snapshot_outcomes_behind", "partition", PARTITION),),
        ),
        Panel(
            "Size of snapshots",
            "Of the last one that was written.",
            "bytes",
            (gauge("forks_snapshot_size_bytes", "partition", PARTITION),),
        ),
        Panel(
            "Entities",
            "Entities with running statistics, and the limit of each table.",
            "short",
            (
                gauge("forks_entities", "partition, table", f"{PARTITION} {{{{table}}}}"),
                Query(f"max(forks_entities_limit{JOB})", "limit"),
            ),
        ),
        Panel(
            "Closed events",
            "Events by which duplicates and late labels are recognised, and the limit of each partition.",
            "short",
            (
                gauge("forks_closed_events", "partition", PARTITION),
                Query(f"max(forks_closed_events_limit{JOB})", "limit"),
            ),
        ),
        Panel(
            "Stored points of the sketch",
            "They grow up to the budget.",
            "short",
            (gauge("forks_sketch_points", "partition, learner", f"{PARTITION} {LEARNER}"),),
        ),
        Panel(
            "Memory",
            "Resident memory of each worker.",
            "bytes",
            (Query(f"process_resident_memory_bytes{JOB}", "{{instance}}"),),
        ),
    ),
)

BROKER: Final = Dashboard(
    "broker",
    "Forks: broker",
    "Do transactions, brokers and the schema registry answer in time?",
    (
        Panel(
            "Transactions",
            "Committed and failed transactions.",
            "cps",
            (
                rate("forks_transactions_total", "instance", "{{instance}} committed"),
                rate("forks_transaction_failures_total", "instance", "{{instance}} failed"),
            ),
        ),
        Panel(
            "Duration of transactions",
            "To send the records and to commit.",
            "s",
            quantiles("forks_transaction_duration_seconds"),
        ),
        Panel(
            "Age of the transaction under way",
            "A worker is not ready after 15 s.",
            "s",
            (gauge("forks_commit_age_seconds", "instance", "{{instance}}"),),
        ),
        Panel(
            "Since the last commit",
            "It grows without harm while nothing comes.",
            "s",
            (gauge("forks_since_commit_seconds", "instance", "{{instance}}"),),
        ),
        Panel(
            "Connections",
            "Brokers to which each client is connected.",
            "short",
            (gauge("forks_broker_up", "instance, client", "{{instance}} {{client}}", "sum"),),
        ),
        Panel(
            "Round trip, 99 %",
            "From a request to its answer. A fetch of the consumer waits for records at the broker.",
            "s",
            (gauge("forks_broker_round_trip_p99_seconds", "client, broker", "{{client}} to {{broker}}"),),
        ),
        Panel(
            "Requests that failed",
            "Requests that failed or were not answered in time.",
            "cps",
            (rate("forks_broker_errors_total", "client, broker", "{{client}} to {{broker}}"),),
        ),
        Panel(
            "Traffic",
            "Bytes sent to and received from brokers.",
            "Bps",
            (
                rate("forks_client_sent_bytes_total", "client", "{{client}} sent"),
                rate("forks_client_received_bytes_total", "client", "{{client}} received"),
            ),
        ),
        Panel(
            "Queues of the clients",
            "Messages not acknowledged (producer), or fetched and not read (consumer).",
            "short",
            (gauge("forks_client_queued_messages", "instance, client", "{{instance}} {{client}}"),),
        ),
        Panel(
            "Schema registry",
            "Questions by their answer, where a registry is used.",
            "cps",
            (rate("forks_registry_lookups_total", "answer", "{{answer}}"),),
        ),
    ),
)

DASHBOARDS: Final = (KEEPING_UP, QUALITY, JOINS, STATE, BROKER, SERVING)
