"""The metrics of a follower against the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from prometheus_client.core import Metric

from pipeline.serving.metrics import follower_registry
from tests.support.serving import figures

TEXT: Final = (Path(__file__).parents[3] / "docs" / "serving.md").read_text()


def own_metrics() -> list[Metric]:
    registry, requests = follower_registry(figures, None)
    requests.requests.labels("/v1/score", "200").inc()
    requests.seconds.labels("/v1/score").observe(0.1)
    return [each for each in registry.collect() if each.name.startswith("forks_")]


def test_the_document_has_every_metric_of_a_follower() -> None:
    rows = re.findall(r"^\| `(forks_serve_\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", TEXT, re.MULTILINE)
    expected = []
    for metric in own_metrics():
        name = metric.name + ("_total" if metric.type == "counter" else "")
        labels = {label for sample in metric.samples for label in sample.labels} - {"le"}
        expected.append(
            (name, metric.type, ", ".join(f"`{each}`" for each in sorted(labels)), metric.documentation)
        )
    assert sorted(rows) == sorted(expected)
