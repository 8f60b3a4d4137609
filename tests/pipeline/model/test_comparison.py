"""The comparison's metrics against a plain loop over the outcomes."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.config.settings import Labels
from pipeline.model.comparison import Comparison, LearnerMetrics
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.settings_text import challengers_text, learner_text
from pipeline.records.outputs import Outcome
from pipeline.task.task import Task
from pipeline.worker.encoder import RecordEncoder
from tests.support.builders import (
    ALL,
    CHALLENGERS,
    LEARNER,
    feed_all,
    inputs,
    interaction,
    label,
    model_under,
    new_model,
    new_task,
    records_of,
)
from tests.support.consumer import Delivery, Step
from tests.support.output_log import OutputLog
from tests.support.recording import eventful


def expected(written: list[bytes], since: int) -> dict[str, LearnerMetrics]:
    """Compute the metrics of labelled outcomes by a plain loop."""
    outcomes = [msgspec.json.decode(value, type=Outcome) for value in written]
    labelled = [o for o in outcomes if o.status == "labelled" and o.prediction_sequence >= since]
    learner_metrics = {}
    for name in ("champion", *(labelled[0].challengers or {})):
        scores = [o.score if name == "champion" else (o.challengers or {})[name] for o in labelled]
        losses = np.log1p(np.exp([-s if o.label else s for s, o in zip(scores, labelled, strict=True)]))
        wrong = sum((s > 0.0) != o.label for s, o in zip(scores, labelled, strict=True))
        learner_metrics[name] = LearnerMetrics(len(labelled), wrong, float(losses.sum()))
    return learner_metrics


class NothingAsked(LabelPolicy):
    """Asks for no label."""

    def ask(self, coins: NDArray[np.float64], *_: object, **__: object) -> NDArray[np.bool_]:
        return np.zeros(len(coins), dtype=np.bool_)


def assert_same(found: Comparison | None, wanted: dict[str, LearnerMetrics], log_odds: set[str]) -> None:
    assert found is not None
    assert found.learner_metrics.keys() == wanted.keys()
    for name, (events, mistakes, log_loss, *_) in wanted.items():
        assert found.learner_metrics[name][:2] == (events, mistakes)
        loss = found.learner_metrics[name].log_loss
        assert loss == pytest.approx(log_loss) if name in log_odds else loss is None


def test_every_labelled_event_is_counted() -> None:
    task = new_task(model=new_model(challengers=CHALLENGERS))
    delivery = Delivery(task, eventful())
    written, encoder = list[bytes](), RecordEncoder()
    for _ in range(30):
        delivery.deliver(Step(9, 9, False, 15))
        written += encoder.encode(task.advance(15)).outcomes.values
    assert len(written) > 100
    assert_same(task.comparison, expected(written, since=0), {"champion"})


def test_after_a_promotion_predictions_of_the_former_champion_do_not_count() -> None:
    """Their challengers have other names, or are other learners of the same name."""
    task, log = new_task(model=new_model(challengers=CHALLENGERS)), OutputLog()
    log.settings |= challengers_text(CHALLENGERS)
    deliver(task, log, 8)
    swapped = {"former": LEARNER, "small": CHALLENGERS["wider"]}
    settings = learner_text(LEARNER) | challengers_text(swapped)
    model = model_under(settings)
    model.learn_many([msgspec.json.decode(value, type=Outcome) for _, value in log.outcomes])
    before = len(log.outcomes)
    task = log.go_on_from(model, settings)
    assert task.comparison is not None
    deliver(task, log, 8)
    since = task.earlier[-1].predictions
    later = [value for _, value in log.outcomes[before:]]
    carried = [msgspec.json.decode(value, type=Outcome).prediction_sequence < since for value in later]
    assert 0 < sum(carried) < len(carried)
    assert_same(task.comparison, expected(later, since), {"champion", "former"})


def test_without_challengers_nothing_is_counted() -> None:
    task = new_task()
    Delivery(task, eventful()).deliver(Step(9, 9, False, 15))
    task.advance(ALL)
    assert task.comparison is None


def deliver(task: Task, log: OutputLog, batches: int) -> None:
    positions = (task.interactions.position.offset, task.labels.position.offset)
    delivery = Delivery(task, eventful().from_positions(*positions))
    for _ in range(batches):
        delivery.deliver(Step(9, 9, False, 15))
        log.commit(task, task.advance(15), snapshot=False)


def test_a_label_that_is_not_learned_counts_in_the_comparison() -> None:
    """Under a policy an outcome has the label that came, even where it is not learned."""
    policy = NothingAsked(Labels(policy="random", rate=0.5))
    task = new_task(model=new_model(challengers=CHALLENGERS), policy=policy)
    feed_all(task, inputs([interaction(1, 10)], [label(1, 20, 1.5)]))
    [outcome] = records_of(task.advance(ALL)).outcomes
    assert (outcome.label, outcome.watch_ratio) == (None, 1.5)
    assert task.comparison is not None
    found = {name: metrics[:2] for name, metrics in task.comparison.learner_metrics.items()}
    scores = {"champion": outcome.score} | (outcome.challengers or {})
    assert found == {name: (1, int(score <= 0.0)) for name, score in scores.items()}


def test_mistakes_of_champion_and_challengers_are_counted_apart() -> None:
    comparison = Comparison(new_model(challengers=CHALLENGERS))
    comparison.add(np.array([1.0]), [{"small": 1.0, "wider": -1.0}], [1.5])
    mistakes = {name: metrics.mistakes for name, metrics in comparison.learner_metrics.items()}
    assert mistakes == {"champion": 0, "small": 0, "wider": 1}
