"""Streams of patients with late labels and drift, as the pipeline would have recorded them.

First pass: each patient comes once, in random order, with its own label. After that, patients are
drawn with replacement until every label has come as often as is wanted, 25 at a time, and labels
are drawn too: from the chances that a logistic regression, fitted to the whole set, gives the
patient. So the true chance that a diagnosis is right is known there. To the ensemble every arrival
is a new patient. A label is known `late` arrivals later. In a stream with drift the labels of a
group change for good, half-way through the first pass: the quarter of the patients with the
largest values of the first numeric feature.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from audit.replay.recorded_stream import Arrivals, RecordedStream
from experiments.bundled_tables import SOURCES, bundled
from experiments.data import Dataset, loans, phishing, wdbc, wine
from learners.arrays.types import Floats, Ints
from settings.loading import source_of, validate
from settings.model import Settings
from settings.overrides import from_option
from settings.proposing.fitting import moments
from settings.proposing.proposal import Proposal, proposed_text, split

MEDICAL = ("wdbc", "biopsy", "pima", "pbc", "colon", "flchain")
SETS = (*MEDICAL, "phishing", "loans", "wine", "turnout")
STEP = 10
"""Milliseconds between two arrivals."""
BURST = 25
"""How many patients arrive at once after the first pass."""


@dataclass(frozen=True)
class Case:
    """One stream to run, as plain data that can be sent to another process.

    wanted   how often every label is to come
    """

    data: str
    late: int
    drift: bool
    wanted: int
    seed: int

    def __str__(self) -> str:
        return f"{self.data}, {self.late} late{', drift' if self.drift else ''}"


@dataclass(frozen=True)
class Stream:
    """The arrivals: which patient, and its label at that time. The first `once` are all different.

    chances   (T, K) the true chance of each label; of those in the first pass, what it is
    """

    data: Dataset
    patients: Ints
    truth: Ints
    chances: Floats
    once: int
    late: int

    def recorded(self, settings: Settings) -> RecordedStream:
        """Return the stream as the learners of the settings see it."""
        steps = len(self.patients)
        names = [f"{t:06d}" for t in range(steps)]
        numbers = np.arange(steps)
        place = {name: j for j, (name, _) in enumerate(self.data.features)}
        arrivals = {}
        for name, learner in settings.learners.items():
            columns = [place[feature.name] for feature in learner.features]
            rows = self.data.rows[self.patients][:, columns]
            arrivals[name] = Arrivals(numbers, self._times(numbers), rows)
        label_times = self._times(numbers + self.late) + STEP // 2
        past = np.zeros(steps, np.bool_)
        return RecordedStream(names, arrivals, None, numbers, label_times, self.truth, past)

    def _times(self, arrivals: Ints) -> Ints:
        """Return when patients come: one by one at first, later in bursts."""
        after = np.maximum(arrivals - self.once, 0)
        return STEP * np.where(after > 0, arrivals - after % BURST, arrivals)


def dataset(name: str) -> Dataset:
    """Return a data set by its name."""
    if name in SOURCES:
        return bundled(name)
    if name == "loans":
        return loans(1_000)
    return {"wdbc": wdbc, "phishing": phishing, "wine": wine}[name]()


def make_stream(case: Case) -> Stream:
    """Draw the stream of a case."""
    data = dataset(case.data)
    rng = np.random.default_rng([case.seed, SETS.index(case.data)])
    once = len(data.rows)
    group = changing(data) if case.drift else np.zeros(once, np.int64)
    patients = [rng.permutation(once)]
    # After the first pass the labels of the group have changed.
    shares = np.bincount((data.truth + group) % data.classes, minlength=data.classes) / once
    counts = np.bincount(data.truth, minlength=data.classes)
    missing = np.maximum(case.wanted - counts // 2, 0)
    extra = int(np.ceil(1.1 * (missing / shares).max()))
    patients.append(rng.integers(0, once, extra))
    drawn = np.concatenate(patients)
    first, drifted = np.arange(len(drawn)) < once, np.arange(len(drawn)) >= once // 2
    chances = np.eye(data.classes)[data.truth][drawn]
    chances[~first] = softened(case.data)[drawn[~first]]
    moved = drifted & (group[drawn] == 1)
    chances[moved] = np.roll(chances[moved], 1, axis=1)
    sums = chances.cumsum(axis=1)
    truth = (rng.random(len(drawn))[:, None] >= sums[:, :-1]).sum(axis=1)
    return Stream(data, drawn, truth, chances, once, case.late)


@cache
def softened(name: str) -> Floats:
    """(N, K) the chances of each label that a logistic regression gives a set's own patients."""
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = dataset(name)
    model = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=1000))
    rows = data.space().expand(data.rows)
    return np.asarray(model.fit(rows, data.truth).predict_proba(rows))


def told(case: Case, stream: Stream) -> Floats:
    """Return the chances (once, K) of one that was told everything: who is ill, and the change.

    It is the same logistic regression, asked about the patients of the first pass.
    """
    chances = softened(case.data)[stream.patients[: stream.once]].copy()
    if case.drift:
        changed = changing(stream.data)[stream.patients[: stream.once]] == 1
        changed[: stream.once // 2] = False
        chances[changed] = np.roll(chances[changed], 1, axis=1)
    return chances


def changing(data: Dataset) -> Ints:
    """(N,) 1 for the patients whose labels change; none where the number takes too few values."""
    numbers = [j for j, (_, categories) in enumerate(data.features) if categories is None]
    column = data.rows[:, numbers[0]]
    with np.errstate(invalid="ignore"):
        return (column > np.nanquantile(column, 0.75)).astype(np.int64)


def proposed(data: Dataset, seed: int, *options: str) -> Settings:
    """Return the settings that `hb init` proposes for a data set, its features dealt at random.

    `options` are those of `--set`.
    """
    order = np.random.default_rng([seed, 1]).permutation(len(data.features))
    features = [_feature(data, j) for j in order.tolist()]
    proposal = Proposal(
        name="confidence",
        labels=data.labels,
        positive=data.labels[-1 if data.positive is None else data.positive],
        learners=split(features, min(3, len(features))),
        origin="an experiment",
    )
    overrides = [from_option(option) for option in options]
    return validate(source_of(proposed_text(proposal), Path("ensemble.toml"), overrides))


def _feature(data: Dataset, j: int) -> dict[str, object]:
    name, categories = data.features[j]
    if categories is not None:
        return {"name": name, "categories": list(categories)}
    column: Floats = data.rows[:, j]
    return {"name": name, "scale": "zlog", **moments(column[~np.isnan(column)])}
