"""The outcome of an experiment: figures by name, tables, charts and remarks, as plain data."""

from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

Cell: TypeAlias = str | float | int | None
Row: TypeAlias = list[Cell]


@dataclass
class Table:
    """A table to be read; numbers are shown with `digits` decimals."""

    title: str
    columns: list[str]
    rows: list[Row]
    digits: int = 2


@dataclass
class Series:
    """A line or a row of bars: x may be numbers or names; `error` is one standard error."""

    name: str
    x: list[Any]
    y: list[float | None]
    error: list[float] | None = None
    dashed: bool = False


@dataclass
class Chart:
    """A figure. `kind` is `line` or `bar`."""

    title: str
    x: str
    y: str
    series: list[Series]
    kind: str = "line"
    log_x: bool = False
    log_y: bool = False


def lying(chart: Chart) -> bool:
    """Return whether the bars are horizontal, because their names are too long to fit."""
    return chart.kind == "bar" and sum(len(str(x)) for x in chart.series[0].x) > 75


@dataclass
class Result:
    """An experiment's whole outcome. Scripts read `figures`; rates are in percent.

    seconds, cpu_seconds   wall-clock time, and CPU time of the experiment's own process
    """

    name: str
    title: str
    settings: dict[str, Any]
    figures: dict[str, float]
    tables: list[Table] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Result":
        """Read what `to_dict` returned."""
        tables = [Table(**table) for table in data["tables"]]
        charts = [
            Chart(**{**chart, "series": [Series(**line) for line in chart["series"]]})
            for chart in data["charts"]
        ]
        return cls(**{**data, "tables": tables, "charts": charts})
