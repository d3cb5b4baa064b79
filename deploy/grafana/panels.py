"""The kinds of panels, so that all dashboards look alike.

Every panel has a description, written for people who did not build the system.
"""

from collections.abc import Mapping, Sequence

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    gauge,
    heatmap,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as shapes
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode

from deploy.grafana.queries import (
    COUNT,
    DATASOURCE,
    PLAIN,
    SECONDS,
    SHARE,
    Q,
    Step,
    changed,
    looks,
    reference,
    target,
    thresholds,
)

Panel = (
    bargauge.Panel
    | gauge.Panel
    | heatmap.Panel
    | stat.Panel
    | statetimeline.Panel
    | table.Panel
    | timeseries.Panel
)


def figure(
    title: str,
    description: str,
    query: Q,
    unit: str,
    *,
    steps: Sequence[Step] = PLAIN,
    empty: str = "no data",
    decimals: int | None = None,
    width: int = 4,
) -> Panel:
    """One number with its recent history."""
    panel = (
        stat.Panel()
        .graph_mode(shapes.BigValueGraphMode.AREA)
        .color_mode(shapes.BigValueColorMode.VALUE)
        .reduce_options(_last())
        .thresholds(thresholds(steps))
        .no_value(empty)
        .with_target(target(query))
    )
    if decimals is not None:
        panel.decimals(decimals)
    return _placed(panel, title, description, unit, size=(width, 5))


def dial(
    title: str, description: str, query: Q, *, steps: Sequence[Step], empty: str, width: int = 4
) -> Panel:
    """A share of a limit, shown up to 150 %."""
    panel = (
        gauge.Panel()
        .min(0)
        .max(1.5)
        .decimals(0)
        .reduce_options(_last())
        .thresholds(thresholds(steps))
        .no_value(empty)
        .with_target(target(query))
    )
    return _placed(panel, title, description, SHARE, size=(width, 5))


def lines(
    title: str,
    description: str,
    queries: Sequence[Q],
    unit: str,
    *,
    stacked: bool = False,
    full: float | None = None,
    steps: Sequence[Step] = (),
    width: int = 12,
    height: int = 9,
) -> timeseries.Panel:
    """Values over time. `full` is the top of the axis; thresholds are drawn as dashed lines."""
    panel = (
        timeseries.Panel()
        .legend(_legend())
        .tooltip(common.VizTooltipOptions().mode(shapes.TooltipDisplayMode.MULTI))
        .line_width(2)
        .fill_opacity(25 if stacked else 0)
        .show_points(shapes.VisibilityMode.NEVER)
        .min(0)
    )
    if stacked:
        panel.stacking(common.StackingConfig().mode(shapes.StackingMode.NORMAL))
    if full is not None:
        panel.max(full)
    if steps:
        style = common.GraphThresholdsStyleConfig().mode(shapes.GraphThresholdsStyleMode.DASHED)
        panel.thresholds(thresholds(steps)).thresholds_style(style)
    for number, query in enumerate(queries):
        panel.with_target(target(query, number))
        if properties := looks(query):
            panel.override_by_query(reference(query, number), properties)
    _placed(panel, title, description, unit, size=(width, height))
    return panel


def bars(
    title: str,
    description: str,
    queries: Sequence[Q],
    unit: str,
    *,
    steps: Sequence[Step] = PLAIN,
    full: float | None = None,
    width: int = 8,
    height: int = 9,
) -> Panel:
    """One bar per series, current values."""
    panel = (
        bargauge.Panel()
        .orientation(shapes.VizOrientation.HORIZONTAL)
        .display_mode(shapes.BarGaugeDisplayMode.BASIC)
        .reduce_options(_last())
        .thresholds(thresholds(steps))
        .min(0)
    )
    if full is not None:
        panel.max(full)
    for number, query in enumerate(queries):
        panel.with_target(target(query, number, shape="bars"))
    return _placed(panel, title, description, unit, size=(width, height))


def sheet(
    title: str,
    description: str,
    queries: Sequence[Q],
    unit: str,
    *,
    transformations: Mapping[str, object],
    columns: Mapping[str, tuple[str, str]] | None = None,
    empty: str = "nothing",
    width: int = 12,
    height: int = 9,
) -> Panel:
    """A table of current values; `columns` gives fields a heading and a unit."""
    steps = [models.DataTransformerConfig(id_val=k, options=v) for k, v in transformations.items()]
    panel = table.Panel().transformations(steps).no_value(empty)
    for number, query in enumerate(queries):
        panel.with_target(target(query, number, shape="table"))
    for field, (heading, its_unit) in (columns or {}).items():
        properties = [changed("displayName", heading), changed("unit", its_unit)]
        panel.override_by_name(field, properties)
    return _placed(panel, title, description, unit, size=(width, height))


def columns_named(*patterns: str) -> dict[str, object]:
    """Return the options of a table transformation that keeps only these columns."""
    return {"include": {"pattern": f"/^({'|'.join(patterns)})$/"}}


def spread(title: str, description: str, query: Q, *, width: int = 12, height: int = 9) -> Panel:
    """The distribution of durations over time: the darker a cell, the more fall into it."""
    colours = (
        heatmap.HeatmapColorOptions()
        .mode(HeatmapColorMode.SCHEME)
        .scheme("Blues")
        .fill("blue")
        .exponent(0.5)
        .steps(32)
    )
    panel = (
        heatmap.Panel()
        .calculate(False)
        .y_axis(heatmap.YAxisConfig().unit(SECONDS))
        .color(colours)
        .with_target(target(query, shape="heatmap"))
    )
    return _placed(panel, title, description, SECONDS, size=(width, height))


def states(
    title: str,
    description: str,
    query: Q,
    names: Mapping[str, tuple[str, str]],
    *,
    width: int = 24,
    height: int = 8,
) -> Panel:
    """The state of each series over time; `names` gives each value a word and a colour."""
    words = {
        value: models.ValueMappingResult(text=word, color=colour, index=number)
        for number, (value, (word, colour)) in enumerate(names.items())
    }
    panel = (
        statetimeline.Panel()
        .mappings([models.ValueMap(options=words)])
        .show_value(shapes.VisibilityMode.NEVER)
        .with_target(target(query))
    )
    return _placed(panel, title, description, COUNT, size=(width, height))


def _last() -> common.ReduceDataOptions:
    return common.ReduceDataOptions().calcs(["lastNotNull"])


def _legend() -> common.VizLegendOptions:
    return (
        common.VizLegendOptions()
        .show_legend(True)
        .display_mode(shapes.LegendDisplayMode.TABLE)
        .placement(shapes.LegendPlacement.BOTTOM)
        .calcs(["lastNotNull"])
    )


def _placed(
    panel: Panel, title: str, description: str, unit: str, *, size: tuple[int, int]
) -> Panel:
    panel.title(title).description(description).datasource(DATASOURCE)
    width, height = size
    return panel.unit(unit).span(width).height(height)
