"""Queries and thresholds: the parts of panels."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from grafana_foundation_sdk.builders import dashboard, prometheus
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

DATASOURCE = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
"""The one that is chosen at the top of the page, so that any Grafana can import it."""
ENSEMBLE = 'ensemble="$ensemble"'
_SERIES = re.compile(r"\b((?:(?:system|learner|agent):)?hb_[a-z0-9_:]+|up(?=\{))(\{)?")
SHARE, SECONDS, COUNT = "percentunit", "s", "short"
BLUE, GREEN, ORANGE, RED, PURPLE = "blue", "green", "orange", "red", "purple"


def of_ensemble(expr: str) -> str:
    """Restrict every series of a query to the chosen ensemble.

    >>> of_ensemble('sum(hb_ready) / count(up{job="hb"})')
    'sum(hb_ready{ensemble="$ensemble"}) / count(up{ensemble="$ensemble", job="hb"})'
    """
    return _SERIES.sub(lambda match: f"{match[1]}{{{ENSEMBLE}" + (", " if match[2] else "}"), expr)


@dataclass(frozen=True)
class Q:
    """A query: its PromQL, how its series are named, and how they are drawn unless as usual."""

    expr: str
    legend: str = ""
    colour: str = ""
    dashed: bool = False
    ref: str = ""
    of_all: bool = False
    """Whether it is about all ensembles, not only the one that is chosen."""


@dataclass(frozen=True)
class Step:
    """The colour from `value` upwards; the first step has no value."""

    colour: str
    value: float | None = None


PLAIN = (Step(BLUE),)
"""One colour for figures that are neither good nor bad in themselves."""


def rising(warn: float, alarm: float) -> tuple[Step, ...]:
    """Return thresholds for a value that should stay small."""
    return Step(GREEN), Step(ORANGE, warn), Step(RED, alarm)


def thresholds(steps: Sequence[Step]) -> dashboard.ThresholdsConfig:
    """Return steps in Grafana's form."""
    values = [models.Threshold(value=step.value, color=step.colour) for step in steps]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(values)


def target(
    query: Q, number: int = 0, *, shape: Literal["series", "bars", "table", "heatmap"] = "series"
) -> prometheus.Dataquery:
    """Return a query in Grafana's form; bars and tables ask for the current value only."""
    expr = query.expr if query.of_all else of_ensemble(query.expr)
    built = prometheus.Dataquery().expr(expr).ref_id(reference(query, number))
    built.datasource(DATASOURCE).legend_format(query.legend or "__auto")
    if shape == "heatmap":
        return built.range().format(PromQueryFormat.HEATMAP)
    if shape == "table":
        return built.instant().format(PromQueryFormat.TABLE)
    return built.instant() if shape == "bars" else built.range()


def reference(query: Q, number: int) -> str:
    """Return the name of a query within its panel."""
    return query.ref or chr(ord("A") + number)


def looks(query: Q) -> list[models.DynamicConfigValue]:
    """Return how a query's series are drawn differently from the rest of their panel."""
    overrides = []
    if query.colour:
        overrides.append(changed("color", {"mode": "fixed", "fixedColor": query.colour}))
    if query.dashed:
        overrides.append(changed("custom.lineStyle", {"fill": "dash", "dash": [8, 6]}))
    return overrides


def changed(name: str, value: object) -> models.DynamicConfigValue:
    """Return one overridden property of a field."""
    return models.DynamicConfigValue(id_val=name, value=value)
