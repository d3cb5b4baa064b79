"""A dashboard: rows of panels, variables, links to other dashboards, alerts as annotations."""

from collections.abc import Mapping, Sequence
from itertools import count

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as models

from deploy.grafana.panels import Panel, figure
from deploy.grafana.queries import COUNT, DATASOURCE, GREEN, RED, Q, Step

TAG = "hb"
FIRING = 'ALERTS{alertname=~"Hb.+", alertstate="firing"}'


def page(
    uid: str,
    title: str,
    description: str,
    rows: Mapping[str, Sequence[Panel]],
    *,
    variables: Sequence[dashboard.QueryVariable] = (),
    span: str = "now-6h",
) -> models.Dashboard:
    """Return a whole dashboard; the row without a name comes first and has no heading."""
    built = (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([TAG])
        .timezone("browser")
        .readonly()
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .time(span, "now")
        .refresh("30s")
        .link(_links())
        .annotation(_alerts())
        .variables(list(variables))
    )
    numbers = count(1)
    for name, panels in rows.items():
        if name:
            built.with_row(dashboard.Row(name).id(next(numbers)))
        for panel in panels:
            built.with_panel(panel.id(next(numbers)))
    return built.build()


def variable(name: str, label: str, description: str, values: str) -> dashboard.QueryVariable:
    """Return a multiple choice, initially all; `values` is Grafana's `label_values(…)`."""
    everything = models.VariableOption(selected=True, text=["All"], value=["$__all"])
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .description(description)
        .datasource(DATASOURCE)
        .query(values)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .current(everything)
    )


def alerts_firing() -> Panel:
    """Return the panel that answers everybody's first question: does anything need attention?"""
    return figure(
        "Alerts",
        "How many alerts are firing now. docs/runbook.md says what each means and what to do.",
        Q(f"count({FIRING}) or vector(0)"),
        COUNT,
        steps=(Step(GREEN), Step(RED, 1)),
        decimals=0,
    )


def _links() -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink("Other dashboards")
        .type(models.DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .as_dropdown(False)
        .keep_time(True)
        .include_vars(False)
        .target_blank(False)
        .icon("external link")
    )


def _alerts() -> dashboard.AnnotationQuery:
    return (
        dashboard.AnnotationQuery()
        .name("Alerts")
        .datasource(DATASOURCE)
        .enable(True)
        .icon_color(RED)
        .expr(FIRING)
    )
