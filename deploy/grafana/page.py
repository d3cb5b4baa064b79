"""A dashboard: rows of panels, variables, links to other dashboards, alerts as annotations."""

from collections.abc import Mapping, Sequence
from itertools import count

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as models

from deploy.grafana.panels import Panel, figure
from deploy.grafana.queries import COUNT, DATASOURCE, GREEN, RED, Q, Step, of_ensemble

TAG = "hb"
FIRING = 'ALERTS{alertname=~"Hb.+", alertstate="firing", ensemble=~"$ensemble|"}'
"""Those of the chosen ensemble, and those that cannot tell whose they are."""


def page(
    uid: str,
    title: str,
    description: str,
    rows: Mapping[str, Sequence[Panel]],
    *,
    variables: Sequence[dashboard.QueryVariable] = (),
    span: str = "now-6h",
) -> models.Dashboard:
    """Return the dashboard of one ensemble; the row without a name comes first, without heading."""
    built = _board(
        uid, title, description, rows, [_datasource(), _ensemble(), _runbook(), *variables]
    )
    return built.time(span, "now").link(_to_runbook()).annotation(_alerts()).build()


def overview(
    uid: str, title: str, description: str, rows: Mapping[str, Sequence[Panel]]
) -> models.Dashboard:
    """Return a dashboard about all ensembles of a Prometheus."""
    return _board(uid, title, description, rows, [_datasource()]).time("now-6h", "now").build()


def _board(
    uid: str,
    title: str,
    description: str,
    rows: Mapping[str, Sequence[Panel]],
    variables: Sequence[dashboard.QueryVariable | dashboard.DatasourceVariable],
) -> dashboard.Dashboard:
    built = (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([TAG])
        .timezone("browser")
        .readonly()
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .refresh("30s")
        .link(_links())
        .variables(list(variables))
    )
    numbers = count(1)
    for name, panels in rows.items():
        if name:
            built.with_row(dashboard.Row(name).id(next(numbers)))
        for panel in panels:
            built.with_panel(panel.id(next(numbers)))
    return built


def variable(name: str, label: str, description: str, values: str) -> dashboard.QueryVariable:
    """Return a multiple choice, initially all; `values` is Grafana's `label_values(…)`."""
    everything = models.VariableOption(selected=True, text=["All"], value=["$__all"])
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .description(description)
        .datasource(DATASOURCE)
        .query(of_ensemble(values))
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .current(everything)
    )


def _datasource() -> dashboard.DatasourceVariable:
    return (
        dashboard.DatasourceVariable("datasource")
        .label("Data source")
        .description("The Prometheus that scrapes the workers")
        .type("prometheus")
        .current(models.VariableOption(text="default", value="default"))
    )


def _ensemble() -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable("ensemble")
        .label("Ensemble")
        .description("The ensemble to show, by its name in its settings")
        .datasource(DATASOURCE)
        .query("label_values(hb_build_info, ensemble)")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
    )


def _runbook() -> dashboard.QueryVariable:
    """Return where the ensemble's workers say that its runbook is, for the link at the top."""
    return (
        dashboard.QueryVariable("runbook")
        .hide(models.VariableHide.HIDE_VARIABLE)
        .datasource(DATASOURCE)
        .query(of_ensemble("label_values(system:hb_runbook:info, url)"))
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
    )


def _to_runbook() -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink("Runbook")
        .type(models.DashboardLinkType.LINK)
        .url("${runbook}")
        .tooltip("What each alert means and what to do about it")
        .target_blank(True)
        .icon("doc")
    )


def alerts_firing() -> Panel:
    """Return the panel that answers everybody's first question: does anything need attention?"""
    return figure(
        "Alerts",
        "How many alerts of this ensemble are firing now. The runbook says what each means and what"
        " to do.",
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
        .include_vars(True)
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
