"""The source of the dashboards and the alerts: ``python -m ops.monitoring`` writes them."""
