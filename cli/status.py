"""`hb status`: the whole system on one screen."""

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import EXIT_FOUND, JsonOption, out, print_json, table
from cli.settings import SetOption, SettingsOption, load

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from agents.monitor.overview import Overview, TaskView
    from agents.monitor.scores import Board
    from settings.model import Settings

_EVERY = 2.0
_MANY = 12
"""From so many tasks on, those of an agent share a row."""


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Running")(status)


def status(
    *,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Look again every two seconds, until Ctrl-C.")
    ] = False,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Show topics, lag, tasks and who holds them, waiting labels, weights and error rates.

    All of it is read from the broker. Exit code 1 if a task is held by nobody.
    """
    from agents.monitor.watch import look

    loaded = load(settings, set_)
    if watch:
        if json:
            raise typer.BadParameter("--json and --watch exclude each other")
        _watch(loaded)
        return
    found = asyncio.run(look(loaded))
    if json:
        print_json(report(found))
    else:
        out.print(screen(loaded, found))
    if any(task.holder is None for task in found.tasks):
        sys.exit(EXIT_FOUND)


def _watch(settings: "Settings") -> None:
    """Show it again and again; a broker that is away is told and waited for."""
    from rich.live import Live
    from rich.text import Text

    from agents.monitor.watch import look
    from settings.errors import BrokerError

    shown: RenderableType = "looking"
    try:
        with Live(shown, console=out, auto_refresh=False, screen=out.is_terminal) as live:
            while True:
                try:
                    shown = screen(settings, asyncio.run(look(settings)))
                except BrokerError as error:
                    shown = Text(str(error), "red")
                live.update(shown, refresh=True)
                time.sleep(_EVERY)
    except KeyboardInterrupt:
        out.print(shown)


def report(found: "Overview") -> dict[str, Any]:
    """Return everything as plain data."""
    board = found.board
    return {
        "topics": [{"name": t.name, "records": t.records} for t in found.topics],
        "workers": found.members,
        "tasks": [
            {"agent": t.agent, "partition": t.partition, "holder": t.holder, "lag": dict(t.lag)}
            for t in found.tasks
        ],
        "lag": sum(task.behind for task in found.tasks),
        "waiting": found.waiting,
        "parked": found.parked,
        "max_pending": found.limit,
        "labelled": board.labelled,
        "rates": board.rates,
        "rates_of_last_1000": board.recent,
        "weights": board.weights,
        "exploration": board.exploration,
        "regret": board.regret,
        "regret_bound": board.bound,
        "counts": dict(found.counts),
    }


def screen(settings: "Settings", found: "Overview") -> "RenderableType":
    """Return everything as one screen."""
    from rich.columns import Columns
    from rich.console import Group
    from rich.text import Text

    workers = f"{len(found.members)} worker{'s' if len(found.members) != 1 else ''}"
    head = Text.assemble(
        (settings.name, "bold"),
        f" · fusion {settings.ensemble.mode} · {workers} · {time.strftime('%H:%M:%S')}",
    )
    return Group(
        head,
        score_table(found.board),
        *_sentences(found),
        Columns([_tasks(found.tasks), _topics(settings, found)], padding=(0, 3)),
    )


def score_table(board: "Board") -> "Table":
    """Return error rates, weights and exploration, the ensemble first."""
    from agents.monitor.scores import ENSEMBLE

    numbers = ("error", "last 1000", "FPR", "FNR", "weight", "exploring", "learned")
    shown = _plain("", *numbers, right=numbers)
    for name, rates in board.rates.items():
        recent = board.recent.get(name, {})
        row = [percent(rates["per"]), percent(recent.get("per"))]
        row += [percent(rates["fpr"]), percent(rates["fnr"])]
        if name == ENSEMBLE:
            row += ["", "", f"{board.labelled:,}"]
        else:
            row += [_number(board.weights.get(name)), percent(board.exploration.get(name))]
            row += [f"{board.learned.get(name, 0):,}"]
        shown.add_row(name, *row, style="bold" if name == ENSEMBLE else None)
    return shown


def percent(share: float | None) -> str:
    """Return a share in percent, or a dash where there is none.

    >>> percent(0.0312), percent(None)
    ('3.1 %', '-')
    """
    return "-" if share is None else f"{100 * share:.1f} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _sentences(found: "Overview") -> list["RenderableType"]:
    from rich.text import Text

    counts, board = found.counts, found.board
    diagnosed = counts["diagnosed_complete"] + counts["diagnosed_incomplete"]
    expired = counts["expired"] + counts["evicted"]
    so_far = (
        f"{diagnosed:,} diagnosed ({counts['diagnosed_incomplete']:,} incomplete):"
        f" {counts['settled']:,} labelled, {expired:,} expired, {found.waiting:,} waiting for"
        f" their label (room for {found.limit:,})"
    )
    early = f"; {found.parked:,} labels came before their patient" if found.parked else ""
    lines = [so_far + early]
    if board.regret is not None:
        bound = "" if board.bound is None else f", at most {board.bound:.1f} by theory"
        lines.append(f"regret against the best learner: {board.regret:.1f}{bound}")
    experts = {name: w for name, w in board.weights.items() if name not in board.rates}
    if experts:
        said = ", ".join(f"{name} {weight:.3f}" for name, weight in experts.items())
        lines.append(f"weights of the fusion's experts: {said}")
    dead = next((t.records for t in found.topics if t.name.endswith("deadletter")), 0)
    if dead:
        lines.append("there are dead letters: hb deadletters")
    return [Text(line, "yellow" if line.startswith("there are") else "") for line in lines]


def _tasks(tasks: "list[TaskView]") -> "Table":
    shown = _plain("task", "held by", "behind", right=("behind",))
    if len(tasks) < _MANY:
        for task in tasks:
            holder = task.holder or "[red]nobody[/red]"
            shown.add_row(f"{task.agent}/{task.partition}", holder, f"{task.behind:,}")
        return shown
    for agent in dict.fromkeys(task.agent for task in tasks):
        mine = [task for task in tasks if task.agent == agent]
        free = sum(task.holder is None for task in mine)
        held = f"{len({t.holder for t in mine if t.holder})} workers"
        held += f", [red]{free} by nobody[/red]" if free else ""
        most = max(mine, key=lambda task: task.behind)
        behind = f"{sum(t.behind for t in mine):,} (most: {most.partition} {most.behind:,})"
        shown.add_row(f"{agent} ({len(mine)})", held, behind)
    return shown


def _topics(settings: "Settings", found: "Overview") -> "Table":
    count, prefix = settings.topics.partitions, settings.topics.prefix
    cut = f"{count} partition{'s' if count > 1 else ''} each"
    shown = _plain(f"topic ({cut})", "kept", right=("kept",))
    for topic in found.topics:
        shown.add_row(topic.name.removeprefix(prefix), f"{topic.records:,}")
    return shown


def _plain(*columns: str, right: tuple[str, ...]) -> "Table":
    """Return a table without lines: a screen must hold three of them."""
    from rich import box

    made = table("", *columns, right=right)
    made.title, made.box, made.pad_edge = None, box.SIMPLE_HEAD, False
    return made
