"""What an evaluation tells to look at: each fault in a table that has it, and silence where it is not."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from forks import ForksSettings
from pipeline.tools.evaluate.advice import (
    NEW,
    Advice,
    Attempt,
    Labelled,
    Learned,
    advise,
    leaks,
    losses_of,
    tied_times,
)

ATTEMPT = Attempt("forks evaluate f.csv", ForksSettings.practical(4))
N = 4_000


def classes(share: float = 0.3, skill: float = 1.0, seed: int = 1, **more: Any) -> Labelled:
    """Events whose scores know so much of their labels; none with a skill of 0."""
    chance = np.random.default_rng(seed)
    signal = 1.5 * chance.standard_normal(N)
    base = np.log(share / (1.0 - share))
    positive = chance.random(N) < expit(base + signal)
    before = np.arange(N)
    events = Labelled(
        label="clicked",
        setting="labels.value",
        numbers=before + 1,
        times=1_772_366_400_000 + 1_000 * before,
        scores=np.log(positive.mean() / (1.0 - positive.mean())) + skill * signal,
        values=positive * 1.0,
        positive=positive,
        mean=(np.cumsum(positive) - positive + 0.5) / (before + 1.0),
        log_odds=True,
    )
    return events._replace(**more)


def names(found: Any) -> list[str]:
    return [each.name for each in found]


def only(found: Any) -> Advice:
    [one] = found
    assert isinstance(one, Advice)
    return one


@pytest.mark.parametrize("seed", range(8))
def test_a_good_model_is_no_reason_to_look(seed: int) -> None:
    assert names(advise(classes(seed=seed), ATTEMPT)) == []
    assert names(advise(classes(seed=seed, log_odds=False), ATTEMPT)) == []


def test_a_model_that_is_worse_than_a_constant_is_named_with_its_surplus() -> None:
    events = classes(skill=-1.0)
    losses = losses_of(events)
    found = only(advise(events, ATTEMPT))
    assert (found.name, found.field) == ("worse_than_constant", None)
    assert re.match(r"from event \d, 2026-03-01 12:00:0\d.000, on, the log loss is 1.2", found.seen)
    surplus, error = (float(each) for each in found.seen.split(": ")[-1].removesuffix(" more").split(" ± "))
    difference = losses.model - losses.constant
    assert surplus == pytest.approx(difference.mean(), rel=0.06)  # two digits are shown
    assert error == pytest.approx(difference.std() / np.sqrt(N), rel=0.4)
    assert found.remedy == "forks evaluate f.csv --set linear_alpha=10"
    paper = Attempt("forks evaluate f.csv", ForksSettings.paper(4, width=1.0))
    assert only(advise(events, paper)).remedy.endswith("--preset practical")


def test_the_turn_is_where_the_model_became_worse_for_good() -> None:
    good, bad, turn = classes(), classes(skill=-1.0), 3_600
    events = good._replace(scores=np.where(np.arange(N) < turn, good.scores, bad.scores), times=None)
    losses = losses_of(events)
    assert losses.model.mean() < losses.constant.mean(), "over all events it is better"
    found = only(advise(events, ATTEMPT))
    since = int(found.seen.removeprefix("from event ").split(" ")[0].replace(",", ""))
    assert abs(since - turn) < 50
    assert found.remedy == "forks evaluate f.csv --set memory=2000"


def test_a_model_is_not_blamed_for_being_new() -> None:
    new = classes(skill=-1.0)
    arrays: dict[str, Any] = {n: each for n, each in new._asdict().items() if isinstance(each, np.ndarray)}
    few, enough = (
        new._replace(**{name: each[:count] for name, each in arrays.items()}) for count in (NEW - 1, NEW)
    )
    assert names(advise(few, ATTEMPT)) == []
    assert names(advise(enough, ATTEMPT)) == ["worse_than_constant"]


def test_numbers_have_squared_errors() -> None:
    chance = np.random.default_rng(2)
    values = chance.normal(20.0, 5.0, N)
    mean = np.full(N, 20.0)
    base = classes()._replace(values=values, positive=None, mean=mean)
    assert names(advise(base._replace(scores=values + chance.standard_normal(N)), ATTEMPT)) == []
    found = only(advise(base._replace(scores=20.0 + 5.0 * chance.standard_normal(N)), ATTEMPT))
    assert "the squared error is " in found.seen
    same = base._replace(values=mean, scores=mean)
    assert only(advise(same, ATTEMPT)).seen == "all 4,000 labels of clicked are 20"


def test_a_label_of_one_class_is_named_with_the_setting_that_makes_it_so() -> None:
    ratings = (np.arange(N) % 5 + 1).astype(np.float64)
    never = classes()._replace(values=ratings, positive=np.zeros(N, np.bool_))
    found = only(advise(never, ATTEMPT))
    assert (found.name, found.field) == ("constant_label", "target.above")
    assert found.seen == "all 4,000 labels of clicked are negative, from 1 to 5"
    assert found.remedy == "set target.above to a number from 1 up to 5"
    always = classes()._replace(values=np.ones(N), positive=np.ones(N, np.bool_))
    assert only(advise(always, ATTEMPT)).field == "labels.value"


def test_rare_classes_are_a_reason_to_look_at_other_figures() -> None:
    rare = classes(share=0.01)
    assert rare.positive is not None
    found = only(advise(rare, ATTEMPT))
    assert found.name == "rare_class"
    assert found.seen.startswith(f"{rare.positive.mean():.2%} of the labels are positive")
    assert "AUC, 0." in found.seen
    assert "log loss, 0." in found.seen
    assert found.remedy == "forks evaluate f.csv --json | jq '{auc, log_loss}'"
    often = rare._replace(positive=~rare.positive, scores=-rare.scores, mean=1.0 - rare.mean)
    assert "of the labels are negative" in only(advise(often, ATTEMPT)).seen
    [remedy] = [each.remedy for each in advise(rare._replace(log_odds=False), ATTEMPT)]
    assert remedy.endswith("--set loss=logistic")


def test_classes_that_are_told_apart_nearly_always_are_a_reason_to_look() -> None:
    events = classes()
    assert events.positive is not None
    found = only(advise(events._replace(scores=np.where(events.positive, 5.0, -5.0)), ATTEMPT))
    assert (found.name, found.field) == ("too_good", "features")
    assert "the AUC is 1.0000" in found.seen


def days(per_day: int, delay: int, *, at_once: bool = False) -> Learned:
    """Events of 20 days, whose labels come so many milliseconds later, unless they are learned at once."""
    times = 86_400_000 * (np.arange(20 * per_day) // per_day)
    after = np.append(times[1:] > times[:-1], [True])
    return Learned(times, times + delay, after | at_once)


def test_ties_that_keep_labels_from_being_learned_are_counted() -> None:
    found = tied_times(days(50, 10_000), "forks evaluate f.csv")
    assert found is not None
    assert (found.name, found.field) == ("tied_times", "interactions.time")
    assert found.seen == (
        "1,000 events have 20 different times, up to 50 the same: 20 labels were learned before the next "
        "event, 980 after all of their time"
    )
    assert found.remedy.endswith("known before the next event: forks evaluate f.csv --label-delay 0s")
    with_times = tied_times(days(50, 10_000), None)
    assert with_times is not None
    assert "--label-delay" not in with_times.remedy


def test_ties_do_no_harm_where_labels_come_later_anyway_or_at_once() -> None:
    assert tied_times(days(50, 3 * 86_400_000), "") is None
    assert tied_times(days(50, 0, at_once=True), "") is None
    assert tied_times(days(1, 10_000), "") is None


def test_a_feature_that_alone_tells_the_label_is_named() -> None:
    chance = np.random.default_rng(4)
    y = (chance.random(N) < 0.3).astype(np.float64)
    honest = [
        pl.Series("useful", y + chance.standard_normal(N)),
        pl.Series("ids", [f"i{number}" for number in range(N)]),
        pl.Series("page", chance.integers(0, 50, N)),
        pl.Series("gone", [None] * N),
        pl.Series("list", [[1.0, 2.0]] * N),
    ]
    told = [
        pl.Series("copy", 2.0 * y + 3.0),
        pl.Series("skewed", np.exp(30.0 * y * chance.random(N) + 10.0 * y)),
        pl.Series("reason", [f"{'paid' if each else 'free'}-{n % 7}" for n, each in enumerate(y)]),
    ]
    found = [*leaks([*honest, *told], y)]
    assert [each.field for each in found] == ["features.copy", "features.skewed", "features.reason"]
    measures = [each.seen.split("(")[1].split(" ")[0] for each in found]
    assert measures == ["correlation", "AUC", "accuracy"]
    assert found[0].remedy == "leave features.copy out if it is known later"
    numbers = 20.0 + chance.standard_normal(N)
    half, near = pl.Series("half", numbers / 2), pl.Series("near", numbers + chance.random(N))
    assert [each.field for each in leaks([half, near], numbers)] == ["features.half"]


def test_a_category_tells_nothing_where_one_class_is_rare() -> None:
    chance = np.random.default_rng(5)
    y = (chance.random(N) < 0.03).astype(np.float64)
    assert [*leaks([pl.Series("page", [f"p{each}" for each in chance.integers(0, 9, N)])], y)] == []


def test_losses_are_those_of_the_running_mean() -> None:
    events = classes()
    assert events.positive is not None
    losses = losses_of(events)
    labels = events.positive.tolist()
    chances = [mean if label else 1.0 - mean for mean, label in zip(events.mean, labels, strict=True)]
    assert losses.constant == pytest.approx(-np.log(chances))
    mistakes = losses_of(events._replace(log_odds=False))
    assert mistakes.constant.mean() == pytest.approx(events.positive.mean(), abs=0.01)


def test_settings_that_are_not_the_default_are_changed_from_what_they_are() -> None:
    strong = Attempt("forks evaluate f.csv", replace(ATTEMPT.learner, linear_alpha=30.0))
    assert only(advise(classes(skill=-1.0), strong)).remedy.endswith("linear_alpha=300")
