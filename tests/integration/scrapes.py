"""Ask a worker for its metrics and probes, as Prometheus and Kubernetes do."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

ANSWER_TIMEOUT = 10.0
"""Seconds for an answer."""


class Metrics(NamedTuple):
    """What a scrape found."""

    kinds: dict[str, str]
    """Kind of each metric by its name."""
    samples: dict[str, dict[tuple[tuple[str, str], ...], float]]
    """Samples by name and by their sorted labels."""

    def value(self, name: str, **labels: str) -> float:
        """The value of a sample."""
        return self.samples[name][tuple(sorted(labels.items()))]

    def total(self, name: str, **labels: str) -> float:
        """The sum of all samples of a metric that have these labels."""
        wanted = set(labels.items())
        return sum(value for found, value in self.samples[name].items() if wanted <= set(found))


def scrape(address: str) -> Metrics:
    """Scrape a worker."""
    with urlopen(f"http://{address}/metrics", timeout=ANSWER_TIMEOUT) as response:
        text = response.read().decode()
    kinds, samples = {}, defaultdict[str, dict[tuple[tuple[str, str], ...], float]](dict)
    for family in text_string_to_metric_families(text):
        kinds[family.name] = family.type
        for sample in family.samples:
            samples[sample.name][tuple(sorted(sample.labels.items()))] = sample.value
    return Metrics(kinds, samples)


def probe(address: str, path: str = "/readyz") -> tuple[int, dict[str, Any]]:
    """Status and body of a probe; 0 and nothing if nobody answers."""
    try:
        with urlopen(f"http://{address}{path}", timeout=ANSWER_TIMEOUT) as response:
            return response.status, json.loads(response.read())
    except HTTPError as error:
        with error:
            return error.code, json.loads(error.read())
    except OSError:
        return 0, {}


def reasons(address: str) -> set[str]:
    """Why the worker is not ready."""
    return {reason["code"] for reason in probe(address)[1].get("reasons", [])}
