"""The report as one self-contained HTML page with interactive figures."""

import re
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from experiments.report.markdown import cell
from experiments.report.result import Chart, Result, Table, lying
from experiments.report.summary import improvements, summary
from experiments.report.words import INTRODUCTION, UNSAID, headlines, setting_words
from settings.errors import InputError


def page(results: Mapping[str, Result]) -> str:
    """Return the page."""
    import orjson

    charts = {
        f"{name}-{k}": plot(chart)
        for name, result in results.items()
        for k, chart in enumerate(result.charts)
    }
    links = "".join(f'<li><a href="#{n}">{escape(r.title)}</a>' for n, r in results.items())
    body = "".join(_section(name, result) for name, result in results.items())
    # A closing tag inside the data would end the script.
    data = orjson.dumps(charts).decode().replace("</", "<\\/")
    return Template(_PAGE).substitute(
        style=_part("page.css"), links=links, introduction=_prose(INTRODUCTION),
        opening=_opening(results), body=body, data=data, library=_library(),
        script=_part("page.js"),
    )  # fmt: skip


def _prose(text: str) -> str:
    """Return text as HTML, with anything in backticks marked up as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _part(name: str) -> str:
    return files("experiments.report").joinpath(name).read_text(encoding="utf-8")


def _opening(results: Mapping[str, Result]) -> str:
    cards = "".join(
        f'<div class="card"><b>{escape(value)}</b><span>{escape(text)}</span></div>'
        for value, text in headlines(results)
    )
    unsaid = "".join(f"<li>{escape(sentence)}</li>" for sentence in UNSAID)
    claims = "".join(_table(table, "claims") for table in summary(results))
    return (
        f'<div class="cards">{cards}</div><section id="summary"><h2>What holds, and what does not'
        f"</h2>{claims}{_table(improvements(results))}"
        f"<p>What the paper leaves unsaid, and what follows:</p><ul>{unsaid}</ul></section>"
    )


def _library() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ModuleNotFoundError as error:
        raise InputError(
            "the report needs plotly; install the extra: pip install 'hedged-bandits[experiments]'"
        ) from error
    return str(get_plotlyjs())


def _section(name: str, result: Result) -> str:
    notes = "".join(f"<li>{_prose(note)}</li>" for note in result.notes)
    figures = "".join(
        f'<div class="chart{" tall" if lying(chart) else ""}" id="{name}-{k}" role="figure"'
        f' aria-label="{escape(chart.title)}"></div>'
        for k, chart in enumerate(result.charts)
    )
    tables = "".join(_table(table) for table in result.tables)
    settings = escape(setting_words(result.settings))
    return (
        f'<section id="{name}"><h2>{escape(result.title)}</h2>'
        f'<p class="how"><code>hb experiments {name}</code> {settings}</p>'
        f"<ul>{notes}</ul>{figures}{tables}</section>"
    )


def _table(table: Table, kind: str = "") -> str:
    numbers = [
        all(not isinstance(row[k], str) for row in table.rows) for k in range(len(table.columns))
    ]
    head = "".join(
        f"<th{' class=n' if number else ''}>{escape(column)}</th>"
        for column, number in zip(table.columns, numbers, strict=True)
    )
    rows = "".join(
        "<tr>" + "".join(_cell(value, table.digits) for value in row) + "</tr>"
        for row in table.rows
    )
    return (
        f"<details open><summary>{escape(table.title)}</summary>"
        f'<div class="wide {kind}" tabindex="0" role="region" aria-label="{escape(table.title)}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>"
    )


def _cell(value: Any, digits: int) -> str:
    kind = "" if isinstance(value, str) else " class=n"
    if value in {"yes", "no"}:
        kind = f" class={value}"
    return f"<td{kind}>{escape(cell(value, digits))}</td>"


def plot(chart: Chart) -> dict[str, Any]:
    """Return a chart in Plotly's format; the page adds colours."""
    flat = lying(chart)
    traces = []
    for series in chart.series:
        trace: dict[str, Any] = {"name": series.name, "x": series.x, "y": series.y}
        if flat:
            trace |= {"x": series.y, "y": series.x, "orientation": "h"}
        if chart.kind == "bar":
            trace["type"] = "bar"
        else:
            trace |= {
                "mode": "lines+markers",
                "line": {"dash": "dash" if series.dashed else "solid"},
            }
        if series.error:
            trace["error_x" if flat else "error_y"] = {"type": "data", "array": series.error}
        traces.append(trace)
    x, y = _axis(chart.x, chart.log_x), _axis(chart.y, chart.log_y)
    layout = {
        "title": {"text": chart.title, "x": 0, "xanchor": "left", "font": {"size": 16}},
        "xaxis": y if flat else x,
        "yaxis": {"autorange": "reversed"} if flat else y,
        "margin": {"t": 50, "r": 15, "l": 50, "b": 50},
        "hovermode": "closest" if flat else "x unified",
    }
    return {"data": traces, "layout": layout}


def _axis(title: str, log: bool) -> dict[str, Any]:
    return {"title": {"text": title}, **({"type": "log"} if log else {})}


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Hedged Bandits: results</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,">
<style>$style</style></head>
<body><div class="page"><nav aria-label="Contents"><details open><summary>Contents</summary>
<ol><li><a href="#summary">Summary</a>$links</ol></details></nav>
<main><h1>Results</h1><p>$introduction</p>$opening$body</main></div>
<script>$library</script>
<script>const charts=$data;
$script</script></body></html>
"""
