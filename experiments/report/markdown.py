"""The report as Markdown."""

from collections.abc import Mapping, Sequence

from experiments.report.result import Cell, Result, Table
from experiments.report.summary import improvements, summary
from experiments.report.words import INTRODUCTION, UNSAID, setting_words


def document(results: Mapping[str, Result], images: Mapping[str, Sequence[str]]) -> str:
    """Return the whole report; `images` are the files of each result's charts."""
    tables = [markdown_table(table) for table in (*summary(results), improvements(results))]
    unsaid = "\n".join(["What the paper leaves unsaid, and what follows:\n", *_list(UNSAID), ""])
    parts = ["# Results\n", INTRODUCTION, *tables, unsaid, _contents(results)]
    for name, result in results.items():
        parts.append(section(name, result, images[name]))
    return "\n".join(parts).rstrip() + "\n"


def _list(sentences: Sequence[str]) -> list[str]:
    return [f"- {sentence}" for sentence in sentences]


def _contents(results: Mapping[str, Result]) -> str:
    lines = [f"- [{result.title}](#{name})" for name, result in results.items()]
    return "\n".join([*lines, ""])


def section(name: str, result: Result, images: Sequence[str]) -> str:
    """Return one experiment's part."""
    lines = [f'<a id="{name}"></a>\n', f"## {result.title}\n"]
    lines.append(f"`hb experiments {name}`; {setting_words(result.settings)}.\n")
    lines += [f"- {note}" for note in result.notes]
    if result.notes:
        lines.append("")
    charts = zip(images, result.charts, strict=True)
    lines += [f"![{chart.title}]({path})\n" for path, chart in charts]
    lines += [markdown_table(table) for table in result.tables]
    return "\n".join(lines)


def markdown_table(table: Table) -> str:
    """Return a table with its title.

    >>> print(markdown_table(Table("T", ["a", "b"], [["x", 1.234], ["y", None]])))
    **T**
    <BLANKLINE>
    | a | b |
    |---|---|
    | x | 1.23 |
    | y | - |
    <BLANKLINE>
    """
    head = "| " + " | ".join(table.columns) + " |"
    rule = "|" + "---|" * len(table.columns)
    rows = ["| " + " | ".join(cell(v, table.digits) for v in row) + " |" for row in table.rows]
    return "\n".join([f"**{table.title}**\n", head, rule, *rows, ""])


def cell(value: Cell, digits: int) -> str:
    """Return a cell as text."""
    if value is None:
        return "-"
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)
