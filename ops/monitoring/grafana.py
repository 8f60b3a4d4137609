"""Dashboards as Grafana stores them."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders.common import VizLegendOptions, VizTooltipOptions
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.timeseries import Panel as TimeSeries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    TooltipDisplayMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    VariableRefresh,
)

from ops.monitoring.panels import Dashboard, Panel

SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${source}")
"""The Prometheus that is chosen above a dashboard."""
TAG: Final = "forks"
HEIGHT: Final = 8
WIDTH: Final = 12
"""Of a panel; a dashboard is 24 wide."""


def dashboard_json(dashboard: Dashboard) -> str:
    """Return the file of a dashboard."""
    jobs = (
        builders.QueryVariable(dashboard.jobs.variable)
        .label("Job")
        .query(f"label_values({dashboard.jobs.present}, job)")
        .datasource(SOURCE)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .multi(True)
        .include_all(True)
        .all_value(".+")
    )
    others = (
        builders.DashboardLink("Forks")
        .type(DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .keep_time(True)
        .include_vars(True)
    )
    built = (
        builders.Dashboard(dashboard.title)
        .uid(f"forks-{dashboard.name}")
        .description(dashboard.text)
        .tags([TAG])
        .link(others)
        .time("now-1h", "now")
        .refresh("10s")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(builders.DatasourceVariable("source").label("Prometheus").type("prometheus"))
        .with_variable(jobs)
    )
    for panel in dashboard.panels:
        built = built.with_panel(_time_series(panel))
    return JSONEncoder(sort_keys=True, indent=2, ensure_ascii=False).encode(built.build()) + "\n"


def _time_series(panel: Panel) -> TimeSeries:
    built = (
        TimeSeries()
        .title(panel.title)
        .description(panel.text)
        .datasource(SOURCE)
        .unit(panel.unit)
        .height(HEIGHT)
        .span(WIDTH)
        .fill_opacity(0)
        .tooltip(VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
        .legend(
            VizLegendOptions()
            .show_legend(True)
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
        )
    )
    for place, query in enumerate(panel.queries):
        target = Dataquery().expr(query.expression).legend_format(query.legend).ref_id(chr(ord("A") + place))
        built = built.with_target(target.range())
    return built
