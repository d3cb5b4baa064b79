"""What `hb status` shows: whether the answers can be relied on, then every figure."""

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cli.output import table
from learners.scores.wording import RATES, percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from agents.monitor.overview import Overview, TaskView
    from agents.monitor.reliability import Standing
    from agents.monitor.scores import Scores
    from settings.model import Settings

_MANY = 12
"""Above this many tasks, the tasks of an agent share a row."""
_STYLES = {"red": "bold red", "amber": "yellow", "green": "green", "grey": ""}


def verdict_lines(standing: "Standing") -> "list[Text]":
    """Return the sentence of the console, and whatever else is wrong below it."""
    from rich.text import Text

    concerns = [(concern.colour, f"Also: {concern.text}.") for concern in standing.concerns[1:]]
    lines = [(standing.colour, standing.sentence), *concerns]
    return [Text(text, _STYLES[str(colour)]) for colour, text in lines]


def line_of_each(
    ensembles: "Mapping[str, tuple[Standing, Overview | None]]",
) -> "list[RenderableType]":
    """Return one row per ensemble, and below what is to be said of those that are not healthy."""
    from rich.text import Text

    from agents.monitor.scores import ENSEMBLE

    numbers = (*RATES.values(), "labelled", "behind", "workers")
    rows = _plain("ensemble", "", *numbers, right=numbers)
    for column in rows.columns[:2]:
        column.no_wrap = True
    for name, (standing, overview) in ensembles.items():
        row = ["-"] * len(numbers)
        if overview is not None:
            scores = overview.scores
            rates = scores.rates.get(ENSEMBLE, {})
            counts = scores.labelled, sum(t.behind for t in overview.tasks)
            row = [percent(rates.get(rate)) for rate in RATES]
            row += [f"{count:,}" for count in (*counts, len(overview.members))]
        rows.add_row(name, str(standing.state), *row, style=_STYLES[str(standing.colour)])
    lines = [
        Text(f"{name}: {standing.sentence}", _STYLES[str(standing.colour)])
        for name, (standing, _) in ensembles.items()
        if str(standing.state) != "healthy"
    ]
    return [rows, *lines]


def report(settings: "Settings", overview: "Overview") -> dict[str, Any]:
    """Return everything as JSON-ready data."""
    scores = overview.scores
    return {
        "topics": [
            {"name": f"{settings.topics.prefix}{name}", "records": records, "behind": behind}
            for name, records, behind in _records(settings, overview)
        ],
        "dead_letters": _has_dead_letters(overview),
        "workers": overview.members,
        "tasks": [
            {
                "agent": task.agent,
                "partition": task.partition,
                "holder": task.holder,
                "lag": dict(task.lag),
                "trouble": None if task.symptom is None else task.symptom.text,
            }
            for task in overview.tasks
        ],
        "held_back": [asdict(partition) for partition in overview.held_back],
        "lag": sum(task.behind for task in overview.tasks),
        "waiting": overview.waiting,
        "parked": overview.parked,
        "max_pending": overview.limit,
        "labelled": scores.labelled,
        "corrections": {
            "amended": overview.counts["amendment_taken"] + overview.counts["label_again"],
            "withdrawn": overview.counts["withdrawal_taken"],
            "unlearned": overview.counts["unlearned"],
            "amendable": overview.amendable[0],
        },
        "taught": scores.taught,
        "rates": scores.rates,
        "rates_of_last_1000": scores.recent,
        "rates_of_history": scores.history,
        "error_rate_rise": scores.risen,
        "disagreements": scores.disagreements,
        "weights": scores.weights,
        "exploration": scores.exploration,
        "regret": scores.regret,
        "regret_bound": scores.bound,
        "answers": scores.answers,
        "missed": scores.missed,
        "miss_targets": scores.miss_targets,
        "counts": dict(overview.counts),
    }


def screen(settings: "Settings", overview: "Overview") -> "RenderableType":
    """Return everything as one screen."""
    from rich.columns import Columns
    from rich.console import Group
    from rich.text import Text

    workers = f"{len(overview.members)} worker{'s' if len(overview.members) != 1 else ''}"
    head = Text.assemble(
        (settings.name, "bold"),
        f" · fusion {settings.ensemble.mode} · {workers} · {time.strftime('%H:%M:%S')}",
    )
    return Group(
        head,
        score_table(overview.scores),
        *_sentences(overview),
        Columns([_tasks(overview.tasks), _topics(settings, overview)], padding=(0, 3)),
    )


def score_table(scores: "Scores") -> "Table":
    """Return error rates, weights and exploration, the ensemble first."""
    from agents.monitor.scores import ENSEMBLE

    rate, *others = RATES.values()
    numbers = (rate, "last 1,000", *others, "weight", "exploring", "learned")
    rows = _plain("", *numbers, right=numbers)
    for name, rates in scores.rates.items():
        recent = scores.recent.get(name, {})
        row = [percent(rates["per"]), percent(recent.get("per"))]
        row += [percent(rates["fnr"]), percent(rates["fpr"])]
        if name == ENSEMBLE:
            row += ["", "", f"{scores.labelled + scores.taught:,}"]
        else:
            row += [_number(scores.weights.get(name)), percent(scores.exploration.get(name))]
            row += [f"{scores.learned.get(name, 0):,}"]
        rows.add_row(name, *row, style="bold" if name == ENSEMBLE else None)
    return rows


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _corrections(counts: "Mapping[str, int]") -> list[str]:
    """Say how many labels were corrected, and what cannot unlearn."""
    changed = counts["amendment_taken"] + counts["label_again"]
    if not changed + counts["withdrawal_taken"]:
        return []
    line = (
        f"labels amended: {changed:,}, withdrawn: {counts['withdrawal_taken']:,}, after they were"
    )
    unlearned = counts["unlearned"]
    rules = f"; rules that learn still hold {unlearned:,} as they were" if unlearned else ""
    return [f"{line} learned: recounted{rules}"]


def _sentences(overview: "Overview") -> list["RenderableType"]:
    from rich.text import Text

    counts, scores = overview.counts, overview.scores
    diagnosed = counts["diagnosed_complete"] + counts["diagnosed_incomplete"]
    expired = counts["expired"] + counts["evicted"]
    so_far = (
        f"{diagnosed:,} diagnosed ({counts['diagnosed_incomplete']:,} incomplete):"
        f" {counts['settled']:,} labelled, {expired:,} expired, {overview.waiting:,} waiting for"
        f" their label (room for {overview.limit:,})"
    )
    early = f"; {overview.parked:,} labels came before their patient" if overview.parked else ""
    lines = [so_far + early]
    if scores.taught:
        rate = percent(scores.history["ensemble"]["per"])
        lines.append(
            f"{scores.taught:,} of these labels were history (error rate {rate}), counted apart"
        )
    lines += _corrections(counts)
    repeated = overview.repeated
    if twice := repeated["duplicate"] + repeated["conflict"]:
        lines.append(f"{twice:,} predictions were second ones for their patient: are ids reused?")
    if repeated["over"]:
        lines.append(
            f"{repeated['over']:,} predictions came when their patient's label had been learned, or"
            " was no longer waited for: was a learner late, or are ids reused?"
        )
    if answered := sum(scores.answers.values()):
        referred = scores.answers["referred"]
        missed = [
            f"{label} {percent(scores.missed.get(label))} (target {percent(target)})"
            for label, target in scores.miss_targets.items()
        ]
        control = f"; wrongly excluded: {', '.join(missed)}" if missed else ""
        lines.append(f"{referred:,} referred ({percent(referred / answered)}){control}")
    if scores.regret is not None:
        bound = "" if scores.bound is None else f", at most {scores.bound:.1f} by theory"
        lines.append(f"regret against the best learner: {scores.regret:.1f}{bound}")
    lines += _changes(scores, diagnosed)
    experts = {name: w for name, w in scores.weights.items() if name not in scores.rates}
    if experts:
        weights = ", ".join(f"{name} {weight:.3f}" for name, weight in experts.items())
        lines.append(f"weights of the fusion's experts: {weights}")
    if _has_dead_letters(overview):
        lines.append("Some records could not be used; see: hb deadletters")
    return [Text(line) for line in lines]


def _changes(scores: "Scores", diagnosed: int) -> list[str]:
    """Say whether errors have become more frequent, and how often learners disagree.

    >>> from agents.monitor.scores import Scores
    >>> _changes(Scores(risen=0.12, disagreements=3), diagnosed=20)[0]
    'the error rate has risen by 12.0 % within the last 1,000 labels, more than chance explains'
    >>> _changes(Scores(disagreements=3), diagnosed=20)
    ['learners disagreed about 15.0 % of the patients']
    """
    lines = []
    if scores.risen:
        lines.append(
            f"the error rate has risen by {percent(scores.risen)} within the last 1,000 labels,"
            " more than chance explains"
        )
    if diagnosed:
        share = percent(scores.disagreements / diagnosed)
        lines.append(f"learners disagreed about {share} of the patients")
    return lines


def _tasks(tasks: "list[TaskView]") -> "Table":
    rows = _plain("task", "held by", "behind", right=("behind",))
    if len(tasks) < _MANY:
        for task in tasks:
            holder = task.holder or "[red]nobody[/red]"
            rows.add_row(f"{task.agent}/{task.partition}", holder, f"{task.behind:,}")
        return rows
    for agent in dict.fromkeys(task.agent for task in tasks):
        agent_tasks = [task for task in tasks if task.agent == agent]
        free = sum(task.holder is None for task in agent_tasks)
        holders = f"{len({t.holder for t in agent_tasks if t.holder})} workers"
        holders += f", [red]{free} by nobody[/red]" if free else ""
        most = max(agent_tasks, key=lambda task: task.behind)
        behind = f"{sum(t.behind for t in agent_tasks):,} (most: {most.partition} {most.behind:,})"
        rows.add_row(f"{agent} ({len(agent_tasks)})", holders, behind)
    return rows


def _topics(settings: "Settings", overview: "Overview") -> "Table":
    count = settings.topics.partitions
    cut = f"{count} partition{'s' if count > 1 else ''} each"
    rows = _plain(f"topic ({cut})", "taken", right=("taken",))
    for name, records, _ in _records(settings, overview):
        rows.add_row(name, f"{records:,}")
    return rows


def _records(settings: "Settings", overview: "Overview") -> list[tuple[str, int, int]]:
    """Return each topic with the records taken from it so far, and those that wait.

    The state has counted them: offsets also count the markers of transactions.
    """
    from agents.monitor.console.activity import counted
    from streams.kafka.topics import Topics

    prefix = settings.topics.prefix
    behind: dict[str, int] = {}
    for task in overview.tasks:
        for topic, lag in task.lag.items():
            name = topic.removeprefix(prefix)
            behind[name] = behind.get(name, 0) + lag
    counts = counted(Topics.of(settings), overview)
    return [(name, records, behind.get(name, 0)) for name, records in counts.items()]


def _has_dead_letters(overview: "Overview") -> bool:
    return any(topic.dead and topic.offsets for topic in overview.topics)


def _plain(*columns: str, right: tuple[str, ...]) -> "Table":
    """Return a table without lines, because a screen must hold three of them."""
    from rich import box

    rows = table("", *columns, right=right)
    rows.title, rows.box, rows.pad_edge = None, box.SIMPLE_HEAD, False
    rows.collapse_padding = True
    for column in rows.columns:  # a heading may take two lines, but no word is cut
        column.min_width = max(map(len, str(column.header).split()), default=0)
    return rows
