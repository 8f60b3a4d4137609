from __future__ import annotations

import json
import re
from collections import Counter
from io import StringIO
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pipeline.records.names import Fault
from pipeline.task.state import COUNTERS, ITEMS, TABLE_COUNTERS
from pipeline.tools.report import Report, render
from pipeline.tools.report.comparison import LabelledScores, compare_learners
from pipeline.tools.report.counts import DEAD_LETTER_FAULTS, RECORDED, Counts, differences
from pipeline.tools.report.figures import baseline_margins, report
from pipeline.tools.report.outcomes import OUTCOME, Outcomes
from pipeline.tools.report.report_text import STAGES


def outcomes(*rows: dict[str, Any]) -> Outcomes:
    """Outcomes numbered from 0, one a second, each predicted before the one before it was learned."""
    table = np.zeros(len(rows), OUTCOME)
    for number, named in enumerate(rows):
        label = named.get("label", 1)
        row = {name: value for name, value in named.items() if name != "label"}
        filled = {
            "sequence": number,
            "model_version": max(number - 1, 0),
            "timestamp": 1_000 * number,
            "label_timestamp": 1_000 * number + 250,
            "user_mean": 0.5,
            "video_mean": 0.5,
            "learned": label >= 0,
            "positive": label == 1,
            "labelled": True,
            "prediction": 1.0,
            "has_probability": True,
        } | row
        for name, value in filled.items():
            table[name][number] = value
    return table


def report_of(*partitions: Outcomes, window: int | None = None, **found: int) -> Report:
    """The report of partitions whose counters are right."""
    counts = []
    for partition in partitions:
        labelled = int(partition["labelled"].sum())
        counted = Counter(predictions=len(partition), labelled=labelled, expired=len(partition) - labelled)
        counted.update(found)
        counts.append(Counts(counted, counted, counted))
    return report(partitions, counts, window)


def text(found: Report) -> str:
    console = Console(width=100, file=StringIO())
    console.print(render(found))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_running_means_use_labels_only_of_outcomes_that_the_model_had_seen() -> None:
    rows = [{"label": 1}, {"label": 1}, {"label": 0}, {"label": -1, "labelled": False}, {"label": 0}]
    versions = [0, 0, 1, 2, 4]
    table = outcomes(
        *({**row, "model_version": version} for row, version in zip(rows, versions, strict=True))
    )
    means = np.array([0.5 / 1, 0.5 / 1, 1.5 / 2, 2.5 / 3, 2.5 / 4])
    assert baseline_margins(table).running_means == pytest.approx(0.5 + 0.5 - (means + 0.5))


def test_running_means_count_what_is_left_where_early_outcomes_are_gone() -> None:
    whole = outcomes({"label": 0}, {"label": 1}, {"label": 1}, {"label": 1, "model_version": 3})
    assert baseline_margins(whole[2:]).running_means[-1] == pytest.approx(0.5 - 1.5 / 2)


def test_without_entities_the_baseline_is_the_more_frequent_class_so_far() -> None:
    labels = np.random.default_rng(5).random(300) < 0.11
    rows = ({"label": int(label), "model_version": n} for n, label in enumerate(labels))
    found = report_of(outcomes(*({**row, "user_mean": np.nan, "video_mean": np.nan} for row in rows)))
    before = np.concatenate([[0], np.cumsum(labels)[:-1]])
    wrong = (2 * before > np.arange(len(labels))) != labels
    assert found.running_mean == pytest.approx(wrong.mean())
    assert found.running_mean == pytest.approx(found.majority, abs=0.01)
    assert (found.running_means, found.running_means_auc, found.windows[0].running_means) == (
        None,
        None,
        None,
    )
    shown = text(found)
    assert re.search(r"running mean +\d+\.\d\d% +- +-", shown)
    assert "running means" not in shown


def test_one_entity_is_predicted_by_its_own_mean() -> None:
    rows = ({"label": int(n % 10 == 0), "model_version": n, "video_mean": np.nan} for n in range(40))
    margins = baseline_margins(outcomes(*({**row, "user_mean": 0.4} for row in rows)))
    assert margins.running_means == pytest.approx(np.full(40, -0.1))


def test_every_labelled_event_counts_and_no_expired_one() -> None:
    found = report_of(
        outcomes(
            {"label": 0, "score": 1.0},
            {"label": 1, "score": 2.0},
            {"label": 1, "prediction": 0.0, "score": -1.0},
            {"label": 0, "labelled": False},
        )
    )
    assert (found.predictions, found.outcomes, found.labelled, found.expired) == (4, 4, 3, 1)
    assert found.mistakes == pytest.approx(2 / 3)
    assert found.majority == pytest.approx(1 / 3)
    assert found.positive == pytest.approx(2 / 3)
    assert found.auc == 0.5
    assert (found.label_delay_median, found.label_delay_p99) == (250.0, 250.0)
    assert found.differences == []


def test_there_is_no_log_loss_without_probabilities() -> None:
    assert report_of(outcomes({}, {"has_probability": False})).log_loss is None
    assert report_of(outcomes({})).log_loss == pytest.approx(np.log(2))


def test_windows_follow_the_time_of_events_over_all_partitions() -> None:
    even = outcomes(*({"timestamp": 2 * n, "label": 1} for n in range(5)))
    odd = outcomes(*({"timestamp": 2 * n + 1, "label": 0} for n in range(5)))
    windows = report_of(even, odd, window=4).windows
    assert [(w.first, w.last, w.events) for w in windows] == [(0, 3, 4), (4, 7, 4), (8, 9, 2)]
    assert [w.mistakes for w in windows] == [0.5, 0.5, 0.5]


@given(st.integers(1, 500), st.integers(1, 60) | st.none())
def test_windows_add_up_to_the_whole(events: int, window: int | None) -> None:
    chance = np.random.default_rng(events)
    table = outcomes(*({} for _ in range(events)))
    table["prediction"] = chance.random(events) < 0.5
    table["positive"] = chance.random(events) < 0.3
    table["user_mean"] = chance.random(events)
    found = report_of(table, window=window)
    weights = np.array([w.events for w in found.windows])
    assert weights.sum() == events
    assert window is not None or len(weights) <= 100
    for name in ("mistakes", "running_means", "majority"):
        shares = np.array([getattr(w, name) for w in found.windows])
        assert getattr(found, name) == pytest.approx(np.average(shares, weights=weights))


def test_counters_of_partitions_are_summed() -> None:
    counts = [Counts(Counter(), {}, {"early": 2, "late": 1}), Counts(Counter(), {}, {"early": 3})]
    counters = report([outcomes(), outcomes()], counts).counters
    assert (counters["early"], counters["late"], counters["orphan"]) == (5, 1, 0)
    assert tuple(counters) == COUNTERS


@pytest.mark.parametrize("name", RECORDED)
def test_a_record_too_few_or_too_many_is_reported(name: str) -> None:
    assert differences([Counts(Counter({name: 5}), {name: 5}, {name: 5})]) == []
    for found in (4, 6):
        [difference] = differences([Counts(Counter({name: found}), {name: 5}, {name: 5})])
        assert name in difference


def test_records_of_a_worker_that_goes_on_meanwhile_are_no_difference() -> None:
    assert differences([Counts(Counter(predictions=7), {"predictions": 5}, {"predictions": 9})]) == []


def test_a_dead_letter_of_no_known_fault_is_reported() -> None:
    [difference] = differences([Counts(Counter(unknown=1), {}, {})])
    assert "unknown" in difference


def test_every_counter_is_shown() -> None:
    assert sorted(name for names in STAGES.values() for name in names) == sorted(
        (*COUNTERS, *TABLE_COUNTERS, Fault.PAST, ITEMS)
    )
    assert set(DEAD_LETTER_FAULTS) < {*COUNTERS, *TABLE_COUNTERS, Fault.PAST}


def test_labels_asked_for_are_counted_where_there_is_a_policy() -> None:
    found = report_of(outcomes({"label": 1}))
    asking = msgspec.structs.replace(found, counters=found.counters | {"asked": 3})
    assert ("label requests" in text(found), "asked 3 · unasked 0" in text(asking)) == (False, True)


def test_the_report_names_figures_baselines_and_differences() -> None:
    found = report_of(outcomes({"label": 0}, {"label": 1}, {"label": 1}, {"label": 1}))
    rendered = text(msgspec.structs.replace(found, differences=["partition 0: predictions: [red] too few"]))
    assert "25.00%" in rendered
    assert 'always "watched"' in rendered
    assert "running means of user and video" in rendered
    assert "median 250 ms" in rendered
    assert "differs: partition 0: predictions: [red] too few" in rendered


def test_a_run_without_labels_is_reported_as_such() -> None:
    rendered = text(report_of(outcomes({"label": 0, "labelled": False})))
    assert "No label was joined yet" in rendered


def test_an_empty_run_is_reported_as_such() -> None:
    found = report([], [])
    assert "Nothing was written yet" in text(found)
    assert found.mistakes is None
    assert found.auc is None


def test_the_json_of_a_report_has_what_scripts_rely_on() -> None:
    found = json.loads(msgspec.json.encode(report_of(outcomes({}, {"label": 0}))))
    assert {
        "events", "predictions", "outcomes", "labelled", "expired", "dead_letters", "mistakes", "auc",
        "log_loss", "majority", "running_means", "running_means_auc", "counters", "windows",
    } <= found.keys()  # fmt: skip


def test_challengers_are_compared_with_the_champion_over_all_partitions() -> None:
    first = LabelledScores(
        np.array([True, False]), {"champion": np.array([1.0, -1.0]), "a": np.array([-2.0, -1.0])}, np.ones(2)
    )
    second = LabelledScores(
        np.array([True, True]), {"champion": np.array([-1.0, -1.0]), "a": np.array([3.0, -1.0])}, np.ones(2)
    )
    nothing = LabelledScores(np.empty(0, np.bool_), {"champion": np.empty(0)}, np.empty(0))
    found = compare_learners([first, nothing, second], frozenset({"champion"}))
    assert found is not None
    champion, other = found.contenders
    assert found.events == 4
    assert (champion.mistakes, champion.alone_right, champion.alone_wrong) == (0.5, 0, 0)
    assert (other.mistakes, other.alone_right, other.alone_wrong) == (0.5, 1, 1)
    losses = np.log1p(np.exp([-1.0, -1.0, 1.0, 1.0]))
    assert champion.log_loss == pytest.approx(losses.mean())
    assert other.log_loss is None
    assert other.auc == pytest.approx((1 + 0.5 + 0.0) / 3)

    rendered = text(msgspec.structs.replace(report_of(outcomes({}, {}, {}, {})), comparison=found))
    assert "over 4 of them" in rendered
    assert re.search(r"champion +50.00% +0\.\d+ +0\.\d+", rendered)
    assert re.search(r"a +50.00% +1 +1 +0.5000 +-", rendered)


def test_without_challengers_there_is_nothing_to_compare() -> None:
    assert (
        compare_learners(
            [LabelledScores(np.array([True]), {"champion": np.array([1.0])}, np.ones(1))], frozenset()
        )
        is None
    )
    assert compare_learners([], frozenset()) is None
    assert "of them" not in text(report_of(outcomes({}, {})))


def test_a_label_that_was_not_learned_still_counts_for_its_prediction() -> None:
    found = report_of(outcomes({"label": -1, "positive": False}, {"label": -1, "positive": True}))
    assert (found.labelled, found.mistakes, found.positive) == (2, 0.5, 0.5)
