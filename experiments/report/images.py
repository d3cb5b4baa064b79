"""Charts as SVG images, for Markdown; the same data gives the same file."""

from pathlib import Path

from experiments.report.result import Chart, lying

SIZE = (7.2, 4.2)


def draw(chart: Chart, path: Path) -> None:
    """Draw a chart into a file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "hb", "font.size": 9}):
        figure = Figure(SIZE, layout="constrained")
        axes = figure.subplots()
        (_bars if chart.kind == "bar" else _lines)(axes, chart)
        x, y = (chart.y, "") if lying(chart) else (chart.x, chart.y)
        axes.set(xlabel=x, ylabel=y, title=chart.title)
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
        figure.savefig(path, metadata={"Date": None})


def _lines(axes: object, chart: Chart) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)  # noqa: S101 - so that only this module needs the type
    for series in chart.series:
        y = [float("nan") if value is None else value for value in series.y]
        style = "--" if series.dashed else "-"
        axes.errorbar(
            series.x, y, yerr=series.error, label=series.name, ls=style, marker=".", capsize=2
        )
    if chart.log_x:
        axes.set_xscale("log")
    if chart.log_y:
        axes.set_yscale("log")


def _bars(axes: object, chart: Chart) -> None:
    """Draw bars side by side, or horizontally if their names are long."""
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)  # noqa: S101 - as above
    names = [str(x) for x in chart.series[0].x]
    width = 0.8 / len(chart.series)
    for k, series in enumerate(chart.series):
        places = [i + (k - (len(chart.series) - 1) / 2) * width for i in range(len(names))]
        sizes = [0.0 if value is None else value for value in series.y]
        if lying(chart):
            axes.barh(places, sizes, width, xerr=series.error, label=series.name)
        else:
            axes.bar(places, sizes, width, yerr=series.error, label=series.name, capsize=2)
    if lying(chart):
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
    else:
        axes.set_xticks(range(len(names)), names)
