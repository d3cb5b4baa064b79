"""*Ensembles*: all of them on one page, for those who run the platform."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from deploy.grafana.page import overview
from deploy.grafana.panels import Panel, columns_named, lines, sheet
from deploy.grafana.queries import COUNT, SECONDS, SHARE, Q

PER_SECOND = "cps"
_RECENT = 'scope="ensemble", window="1000"'
_FIRING = 'count by (ensemble) (ALERTS{alertname=~"Hb.+", alertstate="firing"})'
_COLUMNS = {
    "alerts": ("Alerts", COUNT, f'{_FIRING} or 0 * sum by (ensemble) (up{{job="hb"}})'),
    "up": ("Workers", COUNT, 'sum by (ensemble) (up{job="hb"})'),
    "down": ("Workers down", COUNT, 'sum by (ensemble) (up{job="hb"} == bool 0)'),
    "per": (
        "Error rate",
        SHARE,
        f"max by (ensemble) (system:hb_prediction_error_rate:max{{{_RECENT}}})",
    ),
    "fnr": (
        "Miss rate",
        SHARE,
        f"max by (ensemble) (system:hb_false_negative_rate:max{{{_RECENT}}})",
    ),
    "fpr": (
        "False alarms",
        SHARE,
        f"max by (ensemble) (system:hb_false_positive_rate:max{{{_RECENT}}})",
    ),
    "rate": ("Diagnoses/s", PER_SECOND, "sum by (ensemble) (system:hb_diagnoses:rate5m)"),
    "p99": ("Latency (p99)", SECONDS, "system:hb_end_to_end_seconds:p99_rate5m"),
    "lag": ("Behind", SECONDS, "max by (ensemble) (agent:hb_lag_seconds:max)"),
}


def ensembles() -> Dashboard:
    """Return the dashboard."""
    return overview(
        "hb-ensembles",
        "Ensembles",
        "Every ensemble that this Prometheus watches, one row each. The other dashboards show one"
        " of them in detail.",
        {"": [_now(), *_over_time()]},
    )


def _now() -> Panel:
    return sheet(
        "Now",
        "Alerts firing; workers that answer and that do not; error rate, miss rate and false alarms"
        " among the last 1,000 labelled; diagnoses, their latency, and how far the slowest agent is"
        " behind.",
        [Q(expr, ref=ref, of_all=True) for ref, (_, _, expr) in _COLUMNS.items()],
        COUNT,
        transformations={
            "joinByField": {"byField": "ensemble", "mode": "outer"},
            "filterFieldsByName": columns_named("ensemble", "Value.*"),
        },
        columns={f"Value #{ref}": (name, unit) for ref, (name, unit, _) in _COLUMNS.items()},
        empty="no ensembles yet",
        width=24,
        height=12,
    )


def _over_time() -> list[Panel]:
    return [
        lines(
            _COLUMNS[ref][0] + " over time",
            description,
            [Q(_COLUMNS[ref][2], "{{ensemble}}", of_all=True)],
            _COLUMNS[ref][1],
        )
        for ref, description in (
            ("per", "Among the last 1,000 labelled patients of each ensemble."),
            ("lag", "Upper limit for the age of the oldest record that is not committed."),
        )
    ]
