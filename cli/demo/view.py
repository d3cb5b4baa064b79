"""What `hb demo` shows while it runs: a live picture on a terminal, plain lines elsewhere."""

import time
from typing import TYPE_CHECKING

from cli.output import err
from learners.scores.wording import RATES, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from cli.demo.demonstration import Progress

_BARS = "▁▂▃▄▅▆▇█"
_POINTS = 40
_BAR = 24
_LINE_EVERY = 2.0
_TOLD = 4
"""How many of the latest events the picture shows."""


class Picture:
    """The live view."""

    def __init__(self, progress: "Progress", address: str) -> None:
        self._progress, self._address = progress, address

    def __call__(self) -> "RenderableType":
        """Return the current picture."""
        from rich.console import Group
        from rich.text import Text

        progress = self._progress
        head = Text.assemble(("Breast cancer patients (WDBC) through the whole system", "bold"))
        where = Text(f"Kafka at {self._address}", "dim")
        if progress.page:
            where += Text.assemble(" · console at ", (progress.page, f"link {progress.page}"))
        parts: list[RenderableType] = [head, where, Text(""), self._course()]
        parts += [Text(f"· {sentence}", "yellow") for sentence in progress.messages[-_TOLD:]]
        if progress.scores.rates:
            parts += [_scores(progress), *_curves(progress), _regret(progress)]
        return Group(*parts)

    def _course(self) -> "RenderableType":
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        progress = self._progress
        if not progress.published.patients:
            return progress.step
        row = Table.grid(padding=(0, 2))
        bar = ProgressBar(total=progress.total, completed=len(progress.diagnoses), width=_BAR)
        row.add_row(progress.step, bar, counts(progress))
        return row


def counts(progress: "Progress") -> str:
    """Return how many patients were diagnosed and how many labels learned, in words."""
    diagnosed, labelled = len(progress.diagnoses), progress.scores.labelled
    if not progress.published.patients:
        return ""
    return f"{diagnosed:,} of {progress.total:,} diagnosed, {labelled:,} labels learned"


def _scores(progress: "Progress") -> "Table":
    from rich import box

    from agents.monitor.scores import ENSEMBLE
    from cli.output import table

    scores = progress.scores
    numbers = (*RATES.values(), "exploring")
    rows = table("", "", *numbers, "weight", right=numbers)
    rows.title, rows.box = None, box.SIMPLE_HEAD
    for name, rates in scores.rates.items():
        row = [percent(rates[name]) for name in RATES]
        if name == ENSEMBLE:
            rows.add_row(name, *row, "", "", style="bold")
        else:
            weight = scores.weights.get(name, 0.0)
            drawn = f"[cyan]{'█' * round(_BAR * weight)}[/] {weight:.2f}"
            rows.add_row(name, *row, percent(progress.exploration(name)), drawn)
    return rows


def _curves(progress: "Progress") -> "list[RenderableType]":
    """Return the error rate over time of the ensemble and of the best learner."""
    from rich.text import Text

    from agents.monitor.scores import ENSEMBLE

    best = progress.scores.best
    size = max(progress.total // _POINTS, 1)
    series = {ENSEMBLE: windows(progress.wrong.get(ENSEMBLE, ()), size)}
    if best is not None:
        series[f"{best} (best)"] = windows(progress.wrong.get(best, ()), size)
    top = max((rate for rates in series.values() for rate in rates), default=0.0)
    width = max(map(len, series))
    return [
        Text(f"errors over time  {name:{width}}  {sparks(rates, top)}")
        for name, rates in series.items()
    ]


def windows(wrong: "Sequence[bool]", size: int) -> list[float]:
    """Return the share of errors in each full window of `size`.

    >>> windows([True, False, False, False, True], 2)
    [0.5, 0.0]
    """
    full = len(wrong) // size
    return [sum(wrong[i * size : (i + 1) * size]) / size for i in range(full)]


def sparks(values: "Sequence[float]", top: float) -> str:
    """Draw values from 0 to `top` as bars.

    >>> sparks([0.0, 0.25, 0.5], 0.5)
    '▁▅█'
    """
    if not top:
        return _BARS[0] * len(values)
    return "".join(_BARS[round(value / top * (len(_BARS) - 1))] for value in values)


def _regret(progress: "Progress") -> "RenderableType":
    from rich.text import Text

    scores = progress.scores
    if scores.regret is None or scores.bound is None:
        return Text("")
    share = min(max(scores.regret / scores.bound, 0.0), 1.0) if scores.bound else 0.0
    bar = "█" * round(_BAR * share) + "░" * (_BAR - round(_BAR * share))
    return Text(f"regret {scores.regret:.1f}  {bar}  at most {scores.bound:.1f} by theory")


class Lines:
    """The same as plain lines on standard error: every two seconds what is new, and each step."""

    def __init__(self, progress: "Progress") -> None:
        self._progress = progress
        self._step = ""
        self._printed = 0.0
        self._page = ""
        self._messages_printed = 0
        self._text = ""

    def __call__(self, *, last: bool = False) -> None:
        """Print what is new, if it is due or this is the last time."""
        progress = self._progress
        if progress.page != self._page:
            self._page = progress.page
            err.print(f"hb: console at {self._page}", markup=False, highlight=False, soft_wrap=True)
        for sentence in progress.messages[self._messages_printed :]:
            self._messages_printed += 1
            err.print(f"hb: {sentence}", markup=False, highlight=False, soft_wrap=True)
        due = last or time.monotonic() - self._printed >= _LINE_EVERY
        if progress.step == self._step and not due:
            return
        self._step, self._printed = progress.step, time.monotonic()
        text = line(progress)
        if last or text != self._text:
            err.print(f"hb: {text}", markup=False, highlight=False, soft_wrap=True)
        self._text = text


def line(progress: "Progress") -> str:
    """Return the progress as one line."""
    from agents.monitor.scores import ENSEMBLE

    parts = [progress.step, counts(progress)]
    scores = progress.scores
    if scores.labelled:
        rates = scores.rates[ENSEMBLE]
        parts.append(", ".join(f"{word} {percent(rates[key])}" for key, word in RATES.items()))
        weights = " ".join(f"{name} {weight:.2f}" for name, weight in scores.weights.items())
        parts.append(f"weights {weights}")
        if scores.regret is not None and scores.bound is not None:
            parts.append(f"regret {scores.regret:.1f} of {scores.bound:.1f}")
    return " · ".join(part for part in parts if part)
