"""The whole system at a glance: topics, tasks, lag, who holds what, waiting labels, the score.

Everything is read from the broker: topics and their ends, the consumer group's members, and the
agents' state in its changelogs. So it is the same from any machine, and available even when no
worker runs. Lag is exact: the positions are those committed with the state. `agents.monitor.watch`
does the reading.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from agents.monitor.scores import Scorer, Scores, Sums
from agents.monitor.state_view import StateView
from agents.totals import AmendmentTotals, EnsembleTotals, local_width, summed
from learners.arrays.types import Ints
from learners.scores.change import risen
from learners.scores.window import Window, merged
from settings.model import Settings
from streams.engine.changelogs.changelog import META_KEY
from streams.engine.health import Symptom
from streams.engine.held_back import HeldBack
from streams.kafka.topics import ENSEMBLE, Topics, local

_TOTALS = b"totals/" + bytes(8)
_ASSESSMENT = "assessment"
_DELAYS = ("fusion_delays", "fusion_committee_delays")
"""Hedge's delays: of the fusion rule itself, or of a committee over fusion rules."""


@dataclass(frozen=True)
class TopicView:
    """A topic and how many offsets it holds: its records, and the markers of transactions."""

    name: str
    partitions: int
    offsets: int
    ends: int = 0
    """The sum of its partitions' end offsets: it never falls, so its differences give rates."""
    dead: bool = False
    """Whether it holds dead letters."""


class Condition(NamedTuple):
    """What the consumer group keeps of an input: how far it is read, and what its worker says."""

    offset: int
    metadata: str


_UNKNOWN = Condition(0, "")


@dataclass(frozen=True)
class TaskView:
    """One partition of one agent: who holds it, and how many records it is behind, by topic."""

    agent: str
    partition: int
    holder: str | None
    lag: Mapping[str, int]
    symptom: Symptom | None = None
    """What is wrong with it, as its worker says."""

    @property
    def behind(self) -> int:
        """Return the records that it has not processed yet."""
        return sum(self.lag.values())


class Amendable(NamedTuple):
    """The labels that can still be corrected, and the bytes that are kept for it."""

    labels: int
    bytes: int


_NONE_AMENDABLE = Amendable(0, 0)


@dataclass(frozen=True)
class Overview:
    """The whole system. `counts` are the join's counters, summed over partitions (docs/join.md)."""

    topics: list[TopicView]
    members: list[str]
    tasks: list[TaskView]
    counts: Mapping[str, int]
    scores: Scores
    limit: int
    pending: int = 0
    """Patients in the join: without a diagnosis yet, or diagnosed and without a label."""
    amendable: Amendable = _NONE_AMENDABLE
    at: float = 0.0
    """When it was taken, in seconds since 1970."""
    held_back: tuple[HeldBack, ...] = ()
    """Partitions with records behind a transaction that is not decided, if only for a moment."""
    refused: tuple[str, ...] = ()
    """Agents whose records could not be used in the last ten minutes; a learner by its own name."""

    @property
    def waiting(self) -> int:
        """Return the diagnosed patients whose label has not come."""
        c = self.counts
        diagnosed = c["diagnosed_complete"] + c["diagnosed_incomplete"]
        return diagnosed - c["settled"] - c["expired"] - c["evicted"]

    @property
    def repeated(self) -> dict[str, int]:
        """Return the predictions for patients that had one already or were over, by outcome."""
        c = self.counts
        return {
            "duplicate": c["prediction_duplicate"],
            "conflict": c["prediction_conflict"],
            "over": c["prediction_settled"] + c["prediction_expired"],
        }

    @property
    def parked(self) -> int:
        """Return the labels that came before their patient's prediction."""
        c = self.counts
        came = c["label_parked"] + c["amendment_parked"] - c["withdrawal_parked"]
        return came - c["parked_label_settled"] - c["parked_label_unknown"]


def state_view(names: Topics) -> StateView:
    """Return an empty view of all tables that the figures need."""
    tables: dict[str, tuple[str, ...]] = {names.changelog(agent): () for agent in names.agents}
    tables |= {names.shared(local(learner)): ("totals",) for learner in names.learners}
    tables[names.shared(ENSEMBLE)] = (
        "scores", "regret", "totals", "amendments", "latest", "window", _ASSESSMENT, *_DELAYS
    )  # fmt: skip
    return StateView(tables)


def tails(names: Topics) -> dict[str, tuple[bytes, ...]]:
    """Return the keys that are needed from changelogs that are not read as a whole."""
    positions: dict[str, tuple[bytes, ...]] = {
        names.changelog(agent): (META_KEY,) for agent in names.agents
    }
    return positions | {names.shared(local(learner)): (_TOTALS,) for learner in names.learners}


def figures(settings: Settings, scorer: Scorer, sums: Sums) -> Overview:
    """Return the figures that depend on sums of the state alone."""
    totals = sums.ensemble or EnsembleTotals(summed([], EnsembleTotals.width(settings)))
    amended = sums.amended or AmendmentTotals(summed([], AmendmentTotals.WIDTH))
    return Overview(
        topics=[],
        members=[],
        tasks=[],
        counts=totals.counts | amended.counts,
        scores=scorer.score(sums),
        limit=settings.ensemble.max_pending * settings.topics.partitions,
        pending=sum(totals.waiting.values()),
        amendable=Amendable(amended.amendable, amended.size),
    )


def overview(
    settings: Settings,
    scorer: Scorer,
    view: StateView,
    *,
    inputs: Mapping[str, Sequence[str]],
    holders: Mapping[tuple[str, int], str],
    members: Sequence[str],
    conditions: Mapping[tuple[str, int], Condition],
    begins: Mapping[Any, int],
    ends: Mapping[Any, int],
    at: float,
) -> Overview:
    """Assemble an overview from what was read.

    `inputs` are the topics that each agent reads; `begins` and `ends` cover all but changelogs.
    """
    kinds = Topics.of(settings).kinds
    return replace(
        figures(settings, scorer, sums(settings, view)),
        topics=_topics(kinds, settings.topics.partitions, begins, ends),
        members=list(members),
        tasks=_tasks(settings, view, inputs, holders=holders, conditions=conditions, ends=ends),
        at=at,
    )


def _topics(
    kinds: Mapping[str, str], partitions: int, begins: Mapping[Any, int], ends: Mapping[Any, int]
) -> list[TopicView]:
    counts, offsets = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0)
    for place, end in ends.items():
        counts[place.topic] += end - begins[place]
        offsets[place.topic] += end
    return [
        TopicView(name, partitions, records, offsets[name], kinds[name] == "deadletters")
        for name, records in counts.items()
    ]


def _tasks(
    settings: Settings,
    view: StateView,
    inputs: Mapping[str, Sequence[str]],
    *,
    holders: Mapping[tuple[str, int], str],
    conditions: Mapping[tuple[str, int], Condition],
    ends: Mapping[Any, int],
) -> list[TaskView]:
    names = Topics.of(settings)
    end_of = {(place.topic, place.partition): end for place, end in ends.items()}
    tasks = []
    for agent, topics in inputs.items():
        for number in range(settings.topics.partitions):
            reached = view.positions.get((names.changelog(agent), number))
            if reached is None:  # this user may not read the changelog; the group knows it roughly
                reached = {t: conditions.get((t, number), _UNKNOWN).offset for t in topics}
            lag = {t: max(end_of[t, number] - reached.get(t, 0), 0) for t in topics}
            place = topics[0], number
            # What a worker reports about a task that it no longer holds does not matter.
            symptom = (
                Symptom.read(conditions.get(place, _UNKNOWN).metadata) if place in holders else None
            )
            tasks.append(TaskView(agent, number, holders.get(place), lag, symptom))
    return tasks


def sums(settings: Settings, view: StateView) -> Sums:
    """Return the rows that the figures need, summed over all partitions."""
    names = Topics.of(settings)
    shared, width = names.shared(ENSEMBLE), local_width(settings)
    window = _window(settings, view, shared)
    return Sums(
        confusion=view.sums(shared, "scores"),
        regret=view.sums(shared, "regret"),
        totals={
            name: summed(view.sums(names.shared(local(name)), "totals").values(), width)
            for name in settings.learners
        },
        amended=AmendmentTotals(
            summed(view.sums(shared, "amendments").values(), AmendmentTotals.WIDTH)
        ),
        ensemble=EnsembleTotals(
            summed(view.sums(shared, "totals").values(), EnsembleTotals.width(settings))
        ),
        recent=None if window is None else window.confusion(),
        risen=0.0 if window is None else risen(window.wrong()),
        weights=_weights(view, shared),
        assessed=view.sums(shared, _ASSESSMENT),
        delays=next(filter(None, (view.sums(shared, name) for name in _DELAYS)), {}),
    )


def _weights(view: StateView, shared: str) -> Ints | None:
    """Return each expert's share in the latest diagnosis of any partition."""
    rows = [(int(rows[0][0]), number, rows[0][1:]) for number, rows in view.parts(shared, "latest")]
    return max(rows, key=lambda row: row[:2])[2] if rows else None


def _window(settings: Settings, view: StateView, shared: str) -> Window | None:
    """Return the last 1,000 labelled instances of all partitions."""
    settled = {
        number: EnsembleTotals(rows[0]).counts["settled"]
        for number, rows in view.parts(shared, "totals")
    }
    windows = []
    for number, pages in view.parts(shared, "window"):
        window = Window(1 + len(settings.learners), len(settings.labels))
        window.put_pages(np.array(list(pages)), np.stack(list(pages.values())), settled[number])
        windows.append(window)
    return merged(windows) if windows else None
