"""The files that are made."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ops.monitoring.alerts import ALERTS, prometheus_rule_yaml, rules_yaml
from ops.monitoring.dashboards import DASHBOARDS
from ops.monitoring.grafana import dashboard_json

FOLDER: Final = Path(__file__).parents[1]
"""The folder that their paths start from."""


def files() -> dict[str, str]:
    """Return the text of each file by its path."""
    made = {f"grafana/dashboards/{each.name}.json": dashboard_json(each) for each in DASHBOARDS}
    made["prometheus/alerts.yml"] = rules_yaml(ALERTS)
    made["kubernetes/components/monitoring/prometheus-rule.yaml"] = prometheus_rule_yaml(ALERTS)
    return made
