"""The report as one HTML page that needs nothing else: its figures can be zoomed and read off."""

from collections.abc import Mapping
from html import escape
from typing import Any

from experiments.report.findings import improvements, summary
from experiments.report.markdown import cell
from experiments.report.result import Chart, Result, Table
from experiments.report.words import INTRODUCTION, UNSAID, setting_words
from streams.errors import InputError


def page(results: Mapping[str, Result]) -> str:
    """Return the page."""
    import orjson

    charts = {
        f"{name}-{k}": plot(chart)
        for name, result in results.items()
        for k, chart in enumerate(result.charts)
    }
    links = "".join(f'<a href="#{n}">{escape(r.title)}</a>' for n, r in results.items())
    body = "".join(_section(name, result) for name, result in results.items())
    # A closing tag inside the data would end the script.
    data = orjson.dumps(charts).decode().replace("</", "<\\/")
    return _PAGE.format(
        style=_STYLE, links=links, introduction=escape(INTRODUCTION),
        summary=_opening(results), body=body, data=data,
        library=_library(),
    )  # fmt: skip


def _opening(results: Mapping[str, Result]) -> str:
    unsaid = "".join(f"<li>{escape(sentence)}</li>" for sentence in UNSAID)
    tables = _table(summary(results)) + _table(improvements(results))
    return f"{tables}<p>What the paper leaves unsaid, and what follows:</p><ul>{unsaid}</ul>"


def _library() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ModuleNotFoundError as error:
        raise InputError(
            "the report needs plotly; install the extra: pip install 'hedged-bandits[experiments]'"
        ) from error
    return str(get_plotlyjs())


def _section(name: str, result: Result) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in result.notes)
    figures = "".join(
        f'<div class="chart" id="{name}-{k}"></div>' for k in range(len(result.charts))
    )
    tables = "".join(_table(table) for table in result.tables)
    settings = escape(setting_words(result.settings))
    return (
        f'<section id="{name}"><h2>{escape(result.title)}</h2>'
        f"<p class=how><code>hb experiments {name}</code> {settings}</p>"
        f"<ul>{notes}</ul>{figures}{tables}</section>"
    )


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = "".join(
        "<tr>" + "".join(_cell(value, table.digits) for value in row) + "</tr>"
        for row in table.rows
    )
    return (
        f"<details open><summary>{escape(table.title)}</summary><div class=wide>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>"
    )


def _cell(value: Any, digits: int) -> str:
    kind = "" if isinstance(value, str) else " class=n"
    return f"<td{kind}>{escape(cell(value, digits))}</td>"


def plot(chart: Chart) -> dict[str, Any]:
    """Return a chart as Plotly takes it."""
    traces = []
    for one in chart.series:
        trace: dict[str, Any] = {"name": one.name, "x": one.x, "y": one.y}
        if chart.kind == "bar":
            trace["type"] = "bar"
        else:
            trace |= {"mode": "lines+markers", "line": {"dash": "dash" if one.dashed else "solid"}}
        if one.error:
            trace["error_y"] = {"type": "data", "array": one.error}
        traces.append(trace)
    layout = {
        "title": {"text": chart.title},
        "xaxis": {"title": {"text": chart.x}, "type": "log" if chart.log_x else None},
        "yaxis": {"title": {"text": chart.y}, "type": "log" if chart.log_y else None},
        "margin": {"t": 50, "r": 20},
        "hovermode": "x unified",
    }
    return {"data": traces, "layout": layout}


_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;margin:0;color:#1c1c1c;background:#fff}
nav{position:sticky;top:0;background:#f4f6f8;padding:.6rem 1rem;display:flex;flex-wrap:wrap;
gap:.3rem 1rem;font-size:.85rem;border-bottom:1px solid #d5dbe0;z-index:9}
main{max-width:72rem;margin:auto;padding:1rem}
section{margin:3rem 0;scroll-margin-top:6rem}
a{color:#0b5394;text-decoration:none}.how{color:#555;font-size:.85rem}
.chart{height:26rem}.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.85rem;margin:.5rem 0}
th,td{padding:.2rem .6rem;border-bottom:1px solid #e3e7ea;text-align:left;white-space:nowrap}
td.n{text-align:right;font-variant-numeric:tabular-nums}
summary{cursor:pointer;font-weight:600}
"""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Hedged Bandits: results</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><style>{style}</style></head>
<body><nav>{links}</nav><main><h1>Results</h1><p>{introduction}</p>{summary}{body}</main>
<script>{library}</script>
<script>const charts={data};
for(const [id,c] of Object.entries(charts))
Plotly.newPlot(id,c.data,c.layout,{{responsive:true,displaylogo:false}});
</script></body></html>
"""
