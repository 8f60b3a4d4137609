"""The metrics of a follower against the documentation."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any, Final

import pytest

from pipeline.serving.metrics import REASONS, follower_registry
from tests.support.serving import figures, follower_metrics

TEXT: Final = (Path(__file__).parents[3] / "docs" / "serving.md").read_text()


def test_the_document_has_every_metric_of_a_follower() -> None:
    rows = re.findall(r"^\| `(forks_serve_\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", TEXT, re.MULTILINE)
    expected = []
    for metric in follower_metrics():
        name = metric.name + ("_total" if metric.type == "counter" else "")
        labels = {label for sample in metric.samples for label in sample.labels} - {"le"}
        expected.append(
            (name, metric.type, ", ".join(f"`{each}`" for each in sorted(labels)), metric.documentation)
        )
    assert sorted(rows) == sorted(expected)


@pytest.mark.parametrize(
    ("changed", "reasons"),
    [
        ({}, set()),
        ({"state": "restoring"}, {"restoring"}),
        ({"state": "failed", "reason": "why"}, {"failed"}),
        ({"current_at": time.monotonic() - 60.0}, {"behind"}),
    ],
)
def test_a_follower_that_is_not_ready_says_why(changed: dict[str, Any], reasons: set[str]) -> None:
    registry, _ = follower_registry(lambda: figures(**changed), None, max_lag=10_000)
    [family] = [each for each in registry.collect() if each.name == "forks_serve_not_ready"]
    assert {sample.labels["reason"] for sample in family.samples} == set(REASONS)
    assert {sample.labels["reason"] for sample in family.samples if sample.value == 1} == reasons
