"""The target: its rules at their bounds, and the same for columns as for one."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks import LossName
from pipeline.features.binary import TARGET, BinaryTarget

losses = st.sampled_from(["logistic", "hinge", "squared_hinge", "squared"])
ratios = st.floats(0.0, 1e9) | st.sampled_from([0.0, 0.75, 0.7500001, 2.0, 2.0000001])
targets = st.just(TARGET) | st.builds(
    BinaryTarget, threshold=st.floats(0.0, 3.0), cap=st.floats(0.5, 9.0), scale=st.floats(0.01, 5.0)
)


@given(target=targets, loss=losses, watch_ratios=st.lists(ratios, max_size=8))
def test_columns_are_treated_as_each_alone(
    target: BinaryTarget, loss: LossName, watch_ratios: list[float]
) -> None:
    column = np.array(watch_ratios)
    labels = [target.is_positive(ratio) for ratio in watch_ratios]
    assert target.labels(watch_ratios) == target.are_positive(column).tolist() == labels
    assert target.summands(column).tolist() == [target.summand(ratio) for ratio in watch_ratios]
    assert target.signals(column).tolist() == [target.signal(ratio) for ratio in watch_ratios]
    assert target.taught_many(loss, column).tolist() == [target.taught(loss, each) for each in watch_ratios]


@given(target=targets)
def test_a_signal_is_zero_at_the_threshold_and_bounded(target: BinaryTarget) -> None:
    away = target.scale
    found = [target.signal(target.threshold + step) for step in (-away, -away / 2, 0.0, away, 1e9)]
    assert found == sorted(found)
    assert found[0] == pytest.approx(-0.882, abs=1e-3)
    assert found[2] == 0.0
    assert max(map(abs, found)) <= 1.0
    assert [float(np.float32(signal)) for signal in found] == found


def test_a_score_above_zero_predicts_a_positive_label_with_every_loss() -> None:
    for ratio in (0.0, 0.75, 0.7500001, 300.0):
        positive = TARGET.is_positive(ratio)
        assert positive == (TARGET.taught("logistic", ratio) > 0.0)
        assert positive == (TARGET.taught("squared", ratio) > 0.0)


def test_a_target_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        TARGET.threshold = 0.5  # type: ignore[misc]  # which is what is tried


def test_a_value_below_zero_adds_nothing_to_sums_but_is_taught_as_it_is() -> None:
    values = np.array([-1.0, 0.5, 9.0])
    assert TARGET.summands(values).tolist() == [TARGET.summand(value) for value in values] == [0.0, 0.5, 2.0]
    taught = [TARGET.taught("squared", value) for value in values]
    assert TARGET.taught_many("squared", values).tolist() == taught == [-1.75, -0.25, 1.25]
    assert TARGET.signal(-1.0) < TARGET.signal(0.0)
