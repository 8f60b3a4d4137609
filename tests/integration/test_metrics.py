"""What a real worker shows of a replay, against what the topics hold."""

from __future__ import annotations

import json
import socket
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forks.validation import auc, calibration_error, log_loss
from pipeline.monitoring.families import FAMILIES
from pipeline.records.names import EXCEPTION_HEADER
from tests.integration.harness import Message, Pipeline, interactions_of, invented_events, labels_of, until
from tests.integration.scrapes import Metrics, probe, scrape

REPEATED, GARBAGE = 50, 30
CLIENTS = ("consumer", "producer")
HOSTILE = 400
"""Clients that send half a request, more than the server holds at a time."""
ELSEWHERE = {
    "forks_table",  # live tables
    "forks_registry",
    "forks_window_mean_absolute_error",  # numbers to predict
    "forks_window_root_mean_squared_error",
    "forks_compared_absolute_error",
    "forks_compared_squared_error",
    "forks_categories",  # a sparse part
}
"""Metrics without samples here, by how their names begin."""


def without_samples(found: Metrics) -> set[str]:
    """The documented metrics that have no sample."""
    suffixes = {"counter": "_total", "histogram": "_count", "info": "_info"}
    names = {f"forks_{family.name}": suffixes.get(family.kind, "") for family in FAMILIES}
    return {name for name, suffix in names.items() if not found.samples.get(name + suffix)}


def expected_missing(names: set[str]) -> bool:
    return all(any(name.startswith(each) for each in ELSEWHERE) for name in names)


def test_a_scrape_has_every_metric_and_counters_are_what_the_topics_hold(
    bootstrap: str, topic_prefix: str, tmp_path: Path, free_port: int
) -> None:
    pipeline, address = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2), f"127.0.0.1:{free_port}"
    topics, events = pipeline.topics, invented_events(tmp_path, 3_000)
    count = len(events)
    pipeline.environment = {
        "FORKS_METRICS__ADDRESS": address,
        "FORKS_CHALLENGERS": json.dumps({"linear": {"learner": "arow"}, "wider": {"learner": "forks"}}),
        "FORKS_CHECKPOINT__OUTCOMES": "500",
        "FORKS_WORKER__BATCH": "200",
    }
    pipeline.produce_events(events)
    pipeline.produce(list(interactions_of(topics, events.tail(REPEATED))))
    pipeline.produce(list(labels_of(topics, events))[-REPEATED:])
    pipeline.produce(Message(topics.interactions, b"%d" % n, b"{") for n in range(GARBAGE))
    with pipeline.worker() as worker, ExitStack() as hostile:
        until(lambda: probe(address)[0] != 0, "the server", worker)
        for _ in range(HOSTILE):
            client = hostile.enter_context(socket.create_connection(("127.0.0.1", free_port)))
            client.sendall(b"GET /metrics HTTP/1.1\r\nhost:")

        def complete() -> bool:
            if probe(address)[0] != 200:
                return False
            found = scrape(address)
            windows = found.samples["forks_window_events"].values()
            return (
                found.total("forks_input_records_total") == 2 * (count + REPEATED) + GARBAGE
                and sum(windows) == count
                and found.value("forks_commit_age_seconds") == 0.0
                and all(found.total("forks_broker_up", client=client) > 0.0 for client in CLIENTS)
            )

        until(complete, "the end of the replay", worker)
        assert pipeline.settled()
        found = scrape(address)
        assert not (names := without_samples(found)) or expected_missing(names), names
        info = {"info": "_info"}  # which the text format takes for a part of the name
        assert set(found.kinds) >= {f"forks_{each.name}{info.get(each.kind, '')}" for each in FAMILIES}
        written = {
            name: Counter(record.partition for record in pipeline.read(getattr(topics, name)))
            for name in ("predictions", "outcomes", "dead_letters", "checkpoints", "shared")
        }
        outcomes = pipeline.read_json(topics.outcomes)
        faults = Counter(
            (str(letter.partition), dict(letter.headers)[EXCEPTION_HEADER].decode())
            for letter in pipeline.read(topics.dead_letters)
        )
    for topic, counts in written.items():
        for partition in range(2):
            counted = found.value("forks_output_records_total", partition=str(partition), topic=topic)
            assert counted == counts[partition], (topic, partition)
    assert min(written["shared"].values()) > 0
    for (number, fault), letters in faults.items():
        assert found.value("forks_dead_letters_total", partition=number, reason=fault) == letters
    assert found.total("forks_dead_letters_total") == GARBAGE
    assert found.total("forks_outcomes_total", status="labelled") == len(outcomes) == count
    assert found.total("forks_outcomes_total") == count
    for name in ("interactions", "labels"):
        assert found.total("forks_duplicates_total", topic=name) == REPEATED
        assert found.total("forks_input_lag_records", input=name) == 0.0
    assert found.total("forks_transaction_duration_seconds_count") == found.total("forks_transactions_total")
    assert found.total("forks_transaction_failures_total") == 0.0
    assert found.total("forks_restore_duration_seconds_count") == 2.0
    assert found.total("forks_snapshots_total") >= 4.0
    assert found.total("forks_batch_steps_sum") >= 2 * count
    for partition in range(2):
        own = [json.loads(w.value or b"") for w in pipeline.read(topics.outcomes) if w.partition == partition]
        check_quality(found, own, str(partition))


def check_quality(found: Metrics, outcomes: list[dict[str, Any]], partition: str) -> None:
    """Compare the window of a partition, which holds all its events here, with its outcomes."""
    positive = np.array([outcome["label"] for outcome in outcomes])
    learners = {"champion": np.array([outcome["score"] for outcome in outcomes])}
    for name in ("linear", "wider"):
        learners[name] = np.array([outcome["challengers"][name] for outcome in outcomes])

    def value(name: str, learner: str) -> float:
        return found.value(f"forks_window_{name}", partition=partition, learner=learner)

    assert found.value("forks_window_events", partition=partition) == len(outcomes)
    for learner, scores in learners.items():
        mistakes = np.mean((scores > 0.0) != positive)
        assert value("mistakes_ratio", learner) == pytest.approx(mistakes)
        assert value("auc", learner) == pytest.approx(auc(scores, positive))
    for learner in ("champion", "wider"):
        scores = learners[learner]
        assert value("log_loss", learner) == pytest.approx(log_loss(scores, positive))
        assert value("calibration_error_ratio", learner) == pytest.approx(calibration_error(scores, positive))
    assert value("mistakes_ratio", "baseline:constant") == pytest.approx(
        min(positive.mean(), 1 - positive.mean())
    )
    assert value("auc", "champion") > value("auc", "baseline:running_means") > 0.6
    assert value("mistakes_ratio", "baseline:running_means") < value("mistakes_ratio", "baseline:constant")
