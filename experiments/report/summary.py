"""The report's summary: each claim of the paper and of ours, what was measured, whether it holds.

Everything is computed from the results at hand; a claim whose experiment was not run is left out.
"""

from collections.abc import Mapping

from experiments.paper.published import published
from experiments.paper.rates import improvement
from experiments.report.claims import PAPER
from experiments.report.own_claims import OWN
from experiments.report.result import Result, Row, Table

COLUMNS = ["claim", "expected", "measured", "holds", "if not, why"]


def summary(results: Mapping[str, Result]) -> list[Table]:
    """Return the tables of claims: the paper's, then ours."""
    tables = []
    for title, judges in (("What the paper claims", PAPER), ("What we claim", OWN)):
        rows: list[Row] = []
        for name, judge in judges.items():
            if name in results:
                rows += judge(results[name].figures)
        if rows:
            tables.append(Table(title, COLUMNS, rows))
    return tables


RATIOS = {
    "WM over LR, PER": ("table1", "WM.PER", "LR.PER"),
    "Best LL over second best, PER": ("table1", "Best LL.PER", "LR.PER"),
    "WM over TrackExp, PER": ("table2", "WM.IUP.PER", "TrackExp.IUP.PER"),
    "WM over TrackExp, FPR": ("table2", "WM.IUP.FPR", "TrackExp.IUP.FPR"),
    "Active WM over WM, PER": ("active", "Active WM.PER", "WM.PER"),
    "Active AH over AH, PER": ("active", "Active AH.PER", "AH.PER"),
    "CEL(WM) over WM, PER": ("cel", "CEL(WM) d=3.PER", "WM.PER"),
    "CEL(WM) over WM, FPR": ("cel", "CEL(WM) d=3.FPR", "WM.FPR"),
    "CEL(WM) over Best LL, PER": ("cel", "CEL(WM) d=3.PER", "Best LL.PER"),
    "CEL(WM) over Best LL, FPR": ("cel", "CEL(WM) d=3.FPR", "Best LL.FPR"),
}
"""The improvement ratios that the paper prints, and where ours come from."""


def improvements(results: Mapping[str, Result]) -> Table:
    """Return the paper's improvement ratios beside ours."""
    rows: list[Row] = []
    for name, (experiment, better, worse) in RATIOS.items():
        if experiment in results:
            figures = results[experiment].figures
            ours = improvement(figures[better], figures[worse])
            rows.append([name, published()["improvement"][name], ours])
    return Table("Improvement ratios, (B - A) / B", ["A over B", "paper", "ours"], rows)
