"""Alarms when the world changes: how soon they are raised, and how often for nothing.

The learners that `hb init` proposes diagnose a stream of 2,400 patients, drawn at random, whose
labels come 100 patients late. Half-way through, in some streams

    labels        of the quarter of the patients with the largest values of a feature swap, so that
                  what was learned of them is wrong from then on
    inputs        of one learner are mixed up: from then on it is given those of other patients

and in others nothing happens. One alarm needs labels, so it sees a change only once labels of
changed patients have come; the others need none.

    errors        the error rate of the last 1,000 labels has risen (`learners.scores.change`): the
                  alert HbErrorRateRose
    disagreement  the learners disagreed about more than 5 % of the last 200 patients, and twice as
                  often as about the last 1,000: the alert HbLearnersDisagree, with patients in
                  place of hours
    doubt         the same of the errors that diagnoses expect of themselves, 1 - chance
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeAlias

import numpy as np

from audit.replay.player import Player
from experiments.confidence.streams import Stream, changing, dataset, proposed
from experiments.process_pool import spread
from experiments.report.result import Result, Row, Table
from learners.arrays.types import ABSTAINED, MISSING, Floats, Ints
from learners.ensemble import Outcome
from learners.scores.change import risen
from settings.model import Settings

Tick = Callable[[], object]
Signal: TypeAlias = Callable[["Watched", int], bool]
SETS = ("wdbc", "biopsy", "flchain", "phishing")
CHANGES = ("none", "labels", "inputs")
STREAMS = 3
STEPS, LATE = 2_400, 100
SETTLED = 600
"""Patients before an alarm counts: until then the ensemble is still being taught."""
SHORT, LONG = 200, 1_000
LEAST, TIMES = 0.05, 2.0
EVERY = 10
"""An alarm is looked at after so many patients."""


@dataclass(frozen=True)
class Case:
    """One stream to run, as plain data that can be sent to another process."""

    data: str
    change: str
    seed: int
    steps: int = STEPS


@dataclass
class Watched:
    """What can be watched of a stream, patient by patient.

    doubt      1 - chance of each diagnosis
    disagreed  whether the learners that spoke did not agree
    wrong      of each label that came, whether the diagnosis had been wrong
    known      how many labels had come when a patient was diagnosed
    """

    doubt: Floats
    disagreed: Floats
    known: Ints
    wrong: list[bool] = field(default_factory=list)


class Watcher(Player):
    """Plays a stream and writes down what alarms look at."""

    def __init__(self, stream: Stream, settings: Settings) -> None:
        super().__init__(stream.recorded(settings), settings)
        steps = len(stream.truth)
        self.watched = Watched(np.zeros(steps), np.zeros(steps), np.zeros(steps, np.int64))

    def record(self, outcome: Outcome) -> None:
        """Write down the diagnoses, then the labels that were settled."""
        super().record(outcome)
        watched = self.watched
        if at := [self.number(case.id) for case in outcome.diagnoses]:
            labels, chance = outcome.assessed.labels, outcome.assessed.chance
            watched.doubt[at] = 1.0 - chance[np.arange(len(at)), labels]
            watched.known[at] = len(watched.wrong)
            for t, case in zip(at, outcome.diagnoses, strict=True):
                watched.disagreed[t] = len({*case.labels} - {MISSING, ABSTAINED}) > 1
        watched.wrong += [
            bool(self.diagnosed[self.number(settled.id)] != settled.label)
            for settled in outcome.settled
        ]


def _errors(watched: Watched, t: int) -> bool:
    known = int(watched.known[t])
    return risen(np.array(watched.wrong[max(0, known - LONG) : known], np.bool_)) > 0.0


def _doubled(share: Floats, t: int) -> bool:
    now, usually = (float(share[max(0, t - n) : t].mean()) for n in (SHORT, LONG))
    return now > max(LEAST, TIMES * usually)


SIGNALS: Mapping[str, Signal] = {
    "errors": _errors,
    "disagreement": lambda watched, t: _doubled(watched.disagreed, t),
    "doubt": lambda watched, t: _doubled(watched.doubt, t),
}


@dataclass(frozen=True)
class Raised:
    """When each alarm of a stream was raised: before the change, and first after it."""

    case: Case
    early: Mapping[str, bool]
    first: Mapping[str, int | None]


def alarms(
    count: int = 50, *, seed: int = 2017, quick: bool = False, tick: Tick = lambda: None
) -> Result:
    """Watch streams with and without a change."""
    sets, steps = (SETS[:1], 1_600) if quick else (SETS, STEPS)
    seeds = range(seed, seed + (1 if quick else min(count, STREAMS)))
    cases = [Case(data, change, n, steps) for data, change, n in product(sets, CHANGES, seeds)]
    watched = spread(watch, cases, tick=tick)
    figures: dict[str, float] = {}
    rows: list[Row] = []
    for name in SIGNALS:
        row: Row = [name, figures.setdefault(f"{name}.false_share", _false(watched, name))]
        for change in CHANGES[1:]:
            found = [stream.first[name] for stream in watched if stream.case.change == change]
            delays = [delay for delay in found if delay is not None]
            figures[f"{name}.{change}.found_share"] = len(delays) / len(found)
            row += [len(delays) / len(found), float(np.median(delays)) if delays else None]
        rows.append(row)
    columns = ["alarm", "raised for nothing"]
    for change in CHANGES[1:]:
        columns += [f"{change} changed: raised", "after patients (median)"]
    return Result(
        name="alarms",
        title="Alarms when the world changes",
        settings={"sets": list(sets), "streams of each kind and set": len(seeds), "steps": steps,
                  "late": LATE, "seed": seed},
        figures=figures,
        tables=[Table("Shares of streams, and patients until the alarm", columns, rows)],
        notes=[
            (
                f"Raised for nothing: on a stream, between patient {SETTLED:,} and the change, or"
                " at any time where nothing changes."
            ),
        ],
    )  # fmt: skip


def _false(streams: Sequence[Raised], name: str) -> float:
    return float(
        np.mean([x.early[name] or (x.case.change == "none" and x.first[name] is not None)
                 for x in streams])
    )  # fmt: skip


def watch(case: Case) -> Raised:
    """Run one stream."""
    watcher = Watcher(make(case), proposed(dataset(case.data), case.seed))
    watcher.play()
    watched, change = watcher.watched, case.steps // 2
    raised = {
        name: [t for t in range(SETTLED, case.steps, EVERY) if signal(watched, t)]
        for name, signal in SIGNALS.items()
    }
    early = {name: any(t <= change for t in times) for name, times in raised.items()}
    after = {name: [t - change for t in times if t > change] for name, times in raised.items()}
    return Raised(case, early, {name: min(times, default=None) for name, times in after.items()})


def make(case: Case) -> Stream:
    """Draw the stream of a case."""
    data = dataset(case.data)
    rng = np.random.default_rng([case.seed, SETS.index(case.data)])
    n, steps = len(data.rows), case.steps
    patients = rng.integers(0, n, steps)
    truth = data.truth[patients]
    late = np.arange(steps) >= steps // 2
    if case.change == "labels":
        moved = late & (changing(data)[patients] == 1)
        truth = np.where(moved, (truth + 1) % data.classes, truth)
    if case.change == "inputs":
        # The features that the first learner is given; see `proposed`.
        order = np.random.default_rng([case.seed, 1]).permutation(len(data.features))
        first = np.array_split(order, min(3, len(order)))[0]
        mixed = data.rows.copy()
        mixed[:, first] = mixed[rng.permutation(n)][:, first]
        data = replace(data, rows=np.concatenate([data.rows, mixed]))
        patients = patients + n * late
    chances = np.eye(data.classes)[truth]
    return Stream(data, patients, truth, chances, steps, LATE)
