"""Every experiment by its name: what `hb experiments` can run."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from experiments.report.result import Result

Tick = Callable[[], object]
SEED = 2017


@dataclass(frozen=True)
class Options:
    """How to run an experiment; `quick` shortens everything, just to check that it works."""

    runs: int = 50
    seed: int = SEED
    quick: bool = False

    @property
    def steps(self) -> int:
        """Return the paper's horizon, or a short one."""
        return 1_000 if self.quick else 10_000


@dataclass(frozen=True)
class Experiment:
    """An experiment: where its function is, what it shows, and how long it takes.

    seconds    roughly, with 50 runs on one free core; weights the progress bar of `all`
    ticks      roughly how often it reports progress, with 50 runs of 10000 steps
    steps      whether the function takes `steps`
    """

    function: str
    summary: str
    seconds: float
    ticks: int
    steps: bool = True

    def run(self, options: Options, tick: Tick = lambda: None) -> Result:
        """Run it."""
        module, name = self.function.split(":")
        function: Callable[..., Result] = getattr(import_module(module), name)
        extent: dict[str, Any] = {"steps": options.steps} if self.steps else {}
        if not self.steps:
            extent["quick"] = options.quick
        return function(options.runs, seed=options.seed, tick=tick, **extent)


CATALOGUE: dict[str, Experiment] = {
    "table1": Experiment(
        "experiments.paper.table1:table1", "Table I: Hedged Bandits and offline methods", 42, 120
    ),
    "protocols": Experiment(
        "experiments.paper.protocols:protocols",
        "Which protocol gives the paper's figures",
        900,
        8,
    ),
    "table2": Experiment(
        "experiments.paper.table2:table2",
        "Table II: fusion rules at patient 1001",
        40,
        80,
        steps=False,
    ),
    "active": Experiment(
        "experiments.paper.extensions:active", "Exploration steps, and Active EL", 48, 200
    ),
    "cel": Experiment(
        "experiments.paper.extensions:contextual",
        "Contextual EL, by the number of features it sees",
        110,
        600,
    ),
    "alpha": Experiment(
        "experiments.paper.extensions:alpha",
        "Effect of alpha: two and three parts per feature",
        95,
        480,
    ),
    "sweep": Experiment(
        "experiments.paper.sweep:sweep",
        "Settings that the paper leaves open, one at a time",
        250,
        2000,
    ),
    "composition": Experiment(
        "experiments.paper.curves:composition", "Figure: composition of the training set", 14, 50
    ),
    "learners": Experiment(
        "experiments.paper.curves:learners", "Figure: number of local learners, 2 to 30", 360, 840
    ),
    "past": Experiment("experiments.paper.curves:past", "Figure: number of past patients", 8, 60),
    "labels": Experiment(
        "experiments.paper.curves:labels", "Figure: missing and erroneous labels", 40, 60
    ),
    "single": Experiment(
        "experiments.single_pass.single_pass:single_pass",
        "Single pass: our methods and River's",
        540,
        420,
        steps=False,
    ),
    "tuning": Experiment(
        "experiments.single_pass.tuning:tuning",
        "Single pass: settings tried, ours and River's",
        230,
        1700,
        steps=False,
    ),
    "others": Experiment(
        "experiments.single_pass.other_data_sets:others",
        "Single pass: other data sets",
        750,
        60,
        steps=False,
    ),
    "late": Experiment(
        "experiments.single_pass.late_labels_study:late",
        "Single pass: labels a hundred patients late, ours and River's",
        400,
        240,
        steps=False,
    ),
    "messy": Experiment(
        "experiments.missing_values:messy",
        "Files with holes: hb evaluate beside River's best",
        200,
        2,
        steps=False,
    ),
    "adaptive": Experiment(
        "experiments.paper.adaptive:adaptive",
        "An adaptive partition compared with IUP's cubes",
        210,
        700,
    ),
    "best": Experiment(
        "experiments.best_variants:best", "Our best variants on fresh seeds", 190, 260, steps=False
    ),
    "control": Experiment(
        "experiments.single_pass.control:control", "Online FNR control", 105, 30, steps=False
    ),
    "confidence": Experiment(
        "experiments.confidence.confidence:confidence",
        "How far a diagnosis can be trusted, on ten data sets",
        400,
        40,
        steps=False,
    ),
    "delay": Experiment(
        "experiments.drift:delay", "Late labels: error and regret by delay", 120, 600
    ),
    "drift": Experiment(
        "experiments.drift:drift", "Drift: labels swap, or the best expert changes", 36, 220
    ),
    "alarms": Experiment(
        "experiments.alarms:alarms",
        "Alarms when the world changes: how soon, and how often for nothing",
        240,
        20,
        steps=False,
    ),
    "sleeping": Experiment(
        "experiments.sleeping:sleeping",
        "Learners that are often silent: Hedge, AdaNormalHedge, Squint",
        60,
        30,
        steps=False,
    ),
    "theory": Experiment(
        "experiments.theory:theory", "Regret and its bounds, coverage, the doubling trick", 90, 258
    ),
    "speed": Experiment(
        "experiments.paper.speed:speed",
        "Speed of the simulation and of a plain loop",
        6,
        3,
        steps=False,
    ),
}
