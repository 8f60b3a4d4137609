"""The files in `ops/` against their source, the metrics of workers and followers, and the runbook."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from typer.main import get_command

from ops.monitoring.alerts import ALERTS
from ops.monitoring.dashboards import DASHBOARDS
from ops.monitoring.files import FOLDER, files
from pipeline.cli import app
from pipeline.monitoring.families import FAMILIES
from tests.support.prometheus import needs_promtool
from tests.support.serving import follower_metrics

RUNBOOK = (FOLDER.parent / "docs" / "runbook.md").read_text()
EXPRESSIONS = [
    *(query.expression for each in DASHBOARDS for panel in each.panels for query in panel.queries),
    *(alert.expression for alert in ALERTS),
]
PROCESS = {"process_start_time_seconds", "process_cpu_seconds_total", "process_resident_memory_bytes"}


@pytest.mark.parametrize("path", files())
def test_the_files_are_what_the_source_makes(path: str) -> None:
    assert (FOLDER / path).read_text() == files()[path], "python -m ops.monitoring"


def test_no_other_file_is_there() -> None:
    made = {FOLDER / path for path in files()}
    by_hand = {FOLDER / "prometheus/prometheus.yml"}
    rules = FOLDER.glob("kubernetes/**/prometheus-rule.yaml")
    found = {*FOLDER.glob("grafana/**/*.json"), *FOLDER.glob("prometheus/*"), *rules}
    assert found == made | by_hand


def labels_by_metric() -> dict[str, set[str]]:
    """The labels of each metric of workers and followers, by its name as queries have it."""
    found = {family.exposed_name: set(family.labels) for family in FAMILIES}
    for metric in follower_metrics():
        name = metric.name + ("_total" if metric.type == "counter" else "")
        found[name] = {label for sample in metric.samples for label in sample.labels} - {"le"}
    return found


def test_every_metric_in_use_is_one_of_workers_or_followers() -> None:
    histograms = {family.exposed_name for family in FAMILIES if family.kind == "histogram"}
    histograms |= {metric.name for metric in follower_metrics() if metric.type == "histogram"}
    names = PROCESS | labels_by_metric().keys() - histograms
    names |= {name + end for name in histograms for end in ("_bucket", "_sum", "_count")}
    used = {name for each in EXPRESSIONS for name in re.findall(r"\b(?:forks|process)_\w+", each)}
    assert used - names == set()


def test_every_label_is_one_of_its_metric() -> None:
    labels = labels_by_metric()
    for each in EXPRESSIONS:
        for name, selected in re.findall(r"\b(forks_\w+)\{([^}]*)\}", each):
            known = labels[re.sub("_(bucket|sum|count)$", "", name)]
            assert set(re.findall(r"(\w+)(?:=|!=)", selected)) - {"job"} <= known, name


def test_dashboards_have_titles_of_their_own() -> None:
    stored = [json.loads(text) for path, text in files().items() if path.endswith(".json")]
    assert len({each["uid"] for each in stored}) == len({each["title"] for each in stored}) == len(stored)
    for each in stored:
        titles = [panel["title"] for panel in each["panels"]]
        assert len(set(titles)) == len(titles)
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in each["panels"]]
        assert len(set(places)) == len(places)


def test_every_alert_has_its_section_in_the_runbook_in_this_order() -> None:
    assert re.findall(r"^## (Forks\w+)$", RUNBOOK, re.MULTILINE) == [alert.name for alert in ALERTS]
    sections = re.split(r"^## ", RUNBOOK, flags=re.MULTILINE)[1:]
    for section in sections:
        if section.startswith("Forks"):
            assert re.findall(r"^\*\*(.*?)\.\*\*", section, re.MULTILINE) == ["Means", "Look", "Do"], section


def test_conditions_in_the_runbook_are_those_of_the_alerts() -> None:
    for name in re.findall(r"`(forks_\w+)`", RUNBOOK):
        assert name in labels_by_metric(), name


def test_commands_in_the_runbook_exist_with_their_options() -> None:
    texts = re.findall(r"`forks ([^`]+)`", RUNBOOK)
    assert len(texts) > 10
    for text in texts:
        command, words = get_command(app), text.split()
        while subcommands := getattr(command, "commands", {}):
            command = subcommands[words.pop(0)]
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, text


@needs_promtool
def test_promtool_accepts_the_rules() -> None:
    subprocess.run(["promtool", "check", "rules", str(FOLDER / "prometheus" / "alerts.yml")], check=True)


@needs_promtool
def test_promtool_accepts_the_configuration_with_the_rules() -> None:
    command = ["promtool", "check", "config", str(FOLDER / "prometheus" / "prometheus.yml")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1 rule files found" in done.stdout
