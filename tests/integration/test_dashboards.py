"""A real Prometheus scrapes a worker during a replay, and a follower that is asked for scores.

Every query of dashboards and alerts is asked there.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import polars as pl

from forks.client import Client
from ops.monitoring.alerts import ALERTS
from ops.monitoring.dashboards import DASHBOARDS
from ops.monitoring.files import FOLDER
from pipeline.broker.launch import free_ports
from pipeline.monitoring.quality import WARM_UP
from tests.integration.followers import follower
from tests.integration.harness import TIMEOUT, Message, Pipeline, invented_events, until
from tests.support.prometheus import needs_promtool

ELSEWHERE = {
    "forks_window_mean_absolute_error": "only where numbers are predicted",
    "forks_registry_lookups_total": "only with a schema registry",
    "forks_registry_away": "only with a schema registry",
}
"""Metrics that have no data here, and why."""
QUIET = {
    "forks_not_ready": "a panel has only the reasons that there are, and the worker is ready",
    "forks_serve_not_ready": "as above",
}
"""Metrics that have data, but none that a panel's query lets pass, and why."""
GRAFANA = {"$job": "forks", "$followers": "forks-serve", "$__rate_interval": "5m"}
"""What Grafana would put in place of its variables."""
ANSWER_TIMEOUT = 10.0


def ask(address: str, path: str, **parameters: str) -> Any:
    """An answer of Prometheus' HTTP API, or None if it does not answer yet."""
    try:
        with urlopen(
            f"http://{address}/api/v1/{path}?{urlencode(parameters)}", timeout=ANSWER_TIMEOUT
        ) as found:
            return json.loads(found.read())["data"]
    except HTTPError as error:
        with error:
            if error.code == 400:
                raise AssertionError(error.read().decode()) from error
        return None
    except OSError:
        return None


@contextmanager
def running_prometheus(
    folder: Path, targets: Mapping[str, str]
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A Prometheus with the alerts of `ops/`, its data in a folder, that scrapes a target of each job each
    second."""
    [port] = free_ports(1)
    address = f"127.0.0.1:{port}"
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(FOLDER / "prometheus" / "alerts.yml")],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": [target]}]} for job, target in targets.items()
        ],
    }
    path = folder / "prometheus.yml"  # JSON is YAML
    path.write_text(json.dumps(config))
    data, log = folder / "prometheus", (folder / "prometheus.log").open("wb")
    options = [f"--config.file={path}", f"--storage.tsdb.path={data}", f"--web.listen-address={address}"]
    with (
        log,
        subprocess.Popen([shutil.which("prometheus") or "", *options], stdout=log, stderr=log) as process,
    ):
        try:
            yield address, process
        finally:
            process.terminate()


def ask_for_scores(url: str, events: pl.DataFrame) -> None:
    """Have a follower score a video that it knows, and one that it does not."""
    row = events.row(0, named=True)
    with Client([url], timeout=TIMEOUT) as client:
        client.score({"user_id": row["user_id"]}, [{"video_id": each} for each in (row["video_id"], 10**9)])


def without_data(expression: str) -> bool:
    """Whether a query may have no result here."""
    return any(name in expression for name in (*ELSEWHERE, *QUIET))


@needs_promtool
def test_prometheus_has_data_for_every_panel_and_every_metric_of_an_alert(
    bootstrap: str, topic_prefix: str, tmp_path: Path, free_port: int
) -> None:
    pipeline, target = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2), f"127.0.0.1:{free_port}"
    pipeline.environment = {
        "FORKS_METRICS__ADDRESS": target,
        "FORKS_CHALLENGERS": json.dumps({"linear": {"learner": "arow"}}),
        "FORKS_CHECKPOINT__OUTCOMES": "500",
        "FORKS_WORKER__BATCH": "200",
        # Longer than the stream: interactions are written before their labels, so that with a shorter one
        # many would expire and be learned as negative, and then ForksDrift would be right to fire.
        "FORKS_JOIN__WINDOW": "7d",
    }
    events = invented_events(tmp_path, WARM_UP - 200)  # so that no drift is looked for: it is left to chance
    half = len(events) // 2
    queries = {
        f"{each.title}, {panel.title}: {query.legend}": query.expression
        for each in DASHBOARDS
        for panel in each.panels
        for query in panel.queries
    }
    for name, value in GRAFANA.items():
        queries = {label: query.replace(name, value) for label, query in queries.items()}
    with (
        follower(pipeline) as url,
        running_prometheus(tmp_path, {"forks": target, "forks-serve": url.removeprefix("http://")}) as (
            address,
            prometheus,
        ),
        pipeline.worker() as worker,
    ):
        pipeline.produce_events(events.head(half))
        processed = 'sum(forks_input_records_total{job="forks"})'

        def reached(records: int) -> bool:
            assert prometheus.poll() is None, (tmp_path / "prometheus.log").read_text()
            found = ask(address, "query", query=processed)
            return bool(found and found["result"] and float(found["result"][0]["value"][1]) >= records)

        until(lambda: reached(2 * half), "the first half in Prometheus", worker)
        pipeline.produce_events(events.tail(len(events) - half))
        pipeline.produce([Message(pipeline.topics.interactions, b"1", b"{")])
        until(lambda: reached(2 * len(events) + 1), "the rest in Prometheus", worker)

        def empty() -> dict[str, str]:
            """The queries without a number: no result, or none but NaN."""
            ask_for_scores(url, events)
            found = {label: ask(address, "query", query=query)["result"] for label, query in queries.items()}
            return {
                label: queries[label]
                for label, result in found.items()
                if all(each["value"][1] == "NaN" for each in result)
            }

        until(lambda: all(map(without_data, empty().values())), "data for every panel", worker)
        series = set(ask(address, "label/__name__/values"))
        used = {name for alert in ALERTS for name in re.findall(r"\b(?:forks|process)_\w+", alert.expression)}
        assert used - series - {"up"} == used & ELSEWHERE.keys()
        rules = ask(address, "rules")["groups"][0]["rules"]
        assert {rule["name"]: rule["health"] for rule in rules} == {alert.name: "ok" for alert in ALERTS}
        firing = [rule["name"] for rule in rules if rule["state"] == "firing"]
        assert firing == []
