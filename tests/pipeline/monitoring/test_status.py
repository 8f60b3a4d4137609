from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Metrics
from pipeline.monitoring.counts import FAULTS, INPUTS, OUTPUTS, STATUSES, Counts
from pipeline.monitoring.explanations import ExplainedPrediction, ScoreTerm
from pipeline.monitoring.histogram import Histogram
from pipeline.monitoring.history import INTERVAL, SAMPLES, sample_of
from pipeline.monitoring.metrics import Sample, WorkerMetrics
from pipeline.monitoring.monitor import Monitor
from pipeline.monitoring.quality import LearnerQuality, WindowMetrics
from pipeline.monitoring.readiness import Reason, Vitals
from pipeline.monitoring.status import HistoryStatus, Status, history_of, status_of
from tests.support.examples import examples

INFO = {"worker": "w", "group": "g", "version": "1", "stream": "s"}
BOUNDS = (0.1, 1.0, 10.0)


def counts(predictions: int, **changes: Any) -> Counts:
    inputs, outputs = dict.fromkeys(INPUTS, predictions), dict.fromkeys(OUTPUTS, predictions)
    none = dict.fromkeys(INPUTS, 0)
    found = Counts(inputs, outputs, dict.fromkeys(STATUSES, 1), dict.fromkeys(FAULTS, 0), none, 0, 0, 0)
    return found._replace(**changes)


def sample(at: float, records: int, latencies: tuple[int, ...] = (0, 0, 0, 0), **quality: float) -> Sample:
    topics = dict.fromkeys(("interactions", "labels", "predictions", "outcomes"), records)
    return Sample(at, topics, Histogram(BOUNDS, latencies, 0.0), 3, 0.5, quality)


def sent(worker: WorkerMetrics, reasons: Any = ()) -> Status:
    """The status, over JSON and back."""
    found = status_of(worker, Vitals(5.0), reasons, INFO, now=7.0, clock=1e9, begun=1.0)
    return msgspec.json.decode(msgspec.json.encode(found), type=Status)


def test_a_worker_that_has_done_nothing_has_a_status() -> None:
    status = sent(WorkerMetrics(), [Reason("starting", "no session yet")])
    assert (status.ready, status.reasons[0].code, status.uptime_s, status.loop_age_s) == (
        False,
        "starting",
        6,
        2,
    )
    assert (status.quality.events, status.quality.measure) == (0, None)
    assert (status.partitions, status.predictions) == ([], [])
    assert (status.lag.interactions, status.records["predictions"].per_second) == (None, None)
    assert history_of([]).time == []


def test_partitions_are_summed_up_and_quality_is_weighted_by_events() -> None:
    windows = {
        0: WindowMetrics(100, {"champion": LearnerQuality("champion", 0.5, auc=float("nan"), log_loss=0.7)}),
        1: WindowMetrics(300, {"champion": LearnerQuality("champion", 0.1, auc=0.9, log_loss=0.3)}),
    }
    worker = WorkerMetrics(
        states={0: "running", 1: "closed"},
        counts={0: counts(10), 1: counts(5, dead_letters=dict.fromkeys(FAULTS, 0) | {"late": 2})},
        windows=windows,
        history=[sample(100.0, 5, (1, 0, 0, 0)), sample(105.0, 15, (1, 10, 0, 0))],
    )
    status = sent(worker)
    [champion] = status.quality.learners
    assert status.quality.measure == "mistakes"
    assert champion.mistakes == pytest.approx(0.2)
    assert champion.log_loss == pytest.approx(0.4)
    assert champion.auc == 0.9
    assert status.records["predictions"].total == 15
    assert status.records["predictions"].per_second == pytest.approx(2.0)
    assert status.joins.dead_letters == {"late": 2}
    assert status.joins.outcomes["labelled"] == 2
    assert status.prediction_latency.count == 10
    assert status.prediction_latency.p50 == pytest.approx(0.55)
    assert [(each.number, each.state, each.error) for each in status.partitions] == [
        (0, "running", 0.5),
        (1, "closed", 0.1),
    ]


def test_numbers_are_measured_by_their_error() -> None:
    quality = LearnerQuality("champion", mean_absolute_error=3.5, root_mean_squared_error=5.0)
    status = sent(WorkerMetrics(windows={0: WindowMetrics(9, {"champion": quality})}))
    assert status.quality.measure == "mean_absolute_error"
    assert status.quality.learners[0].mean_absolute_error == 3.5
    assert status.quality.learners[0].mistakes is None


TERMS = st.lists(st.floats(-30.0, 30.0), min_size=1, max_size=9)


@examples(60)
@given(TERMS, st.text(max_size=30), st.text(max_size=30))
def test_terms_and_ids_are_sent_bit_by_bit(values: list[float], event_id: str, other: str) -> None:
    event_id, other = (text.encode(errors="replace").decode() for text in (event_id, other))
    terms = [ScoreTerm("entity", f"{other}{number}", value) for number, value in enumerate(values)]
    explained = ExplainedPrediction(3, 7, event_id, {"user": other}, 5, sum(values), None, 1.5, terms)
    [found] = sent(WorkerMetrics(explanations=[explained])).predictions
    assert [*found.terms] == terms
    assert (found.event_id, found.ids, found.score) == (event_id, {"user": other}, sum(values))


@examples(100)
@given(st.lists(st.floats(0.0, 9.9), min_size=1, max_size=50), st.sampled_from([0.5, 0.9, 0.99]))
def test_a_quantile_is_in_the_bucket_of_the_observation(values: list[float], share: float) -> None:
    places = np.searchsorted(BOUNDS, values)
    found = Histogram(BOUNDS, tuple(np.bincount(places, minlength=4).tolist())).quantile(share)
    exact = sorted(values)[max(0, int(np.ceil(share * len(values) - 1e-9)) - 1)]
    edges = (0.0, *BOUNDS)
    place = int(np.searchsorted(BOUNDS, exact))
    assert found is not None
    assert edges[place] <= found <= edges[place + 1]


def test_history_holds_an_hour_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("pipeline.monitoring.monitor.time.monotonic", lambda: now)
    monkeypatch.setattr("pipeline.monitoring.monitor.time.time", lambda: now)
    monitor = Monitor(Metrics(address="127.0.0.1:1"))

    def update() -> None:
        monitor.update({}, lambda _: {}, lambda: None)

    for _ in range(SAMPLES + 50):
        now += 1.5
        update()
        before = monitor.metrics.history
        assert before[-1].time == now
        now += INTERVAL - 1.5
        update()
        assert monitor.metrics.history is before
    history = monitor.metrics.history
    assert len(history) == SAMPLES
    assert SAMPLES * INTERVAL == 3600.0
    assert len(json.dumps(msgspec.to_builtins(history_of(history)))) < 200_000


def test_history_has_a_column_for_each_learner_and_rates_of_each_interval() -> None:
    samples = [
        sample(100.0, 10, (1, 0, 0, 0)),
        sample(105.0, 20, (1, 4, 0, 0), champion=0.3),
        sample(110.0, 20, (1, 4, 0, 9), champion=0.2, other=0.4),
    ]
    found = msgspec.json.decode(msgspec.json.encode(history_of(samples)), type=HistoryStatus)
    assert found.time == [105.0, 110.0]
    assert found.per_second["predictions"] == [2.0, 0.0]
    assert found.latency_p50_s == [pytest.approx(0.55), None]
    assert found.error == {"champion": [0.3, 0.2], "other": [None, 0.4]}
    assert found.lag_records == [3, 3]


def test_a_sample_of_a_worker_that_has_done_nothing_is_empty() -> None:
    found = sample_of(WorkerMetrics(), 5.0)
    assert (found.lag_records, found.event_time_lag, found.latency, found.quality) == (None, None, None, {})
    assert set(found.records.values()) == {0}
