"""From a fused prediction to a diagnosis that can be weighed: chance, answer, track record.

One layer after any fusion rule. All it knows is counted in integers, one row per label, so that the
order of labels does not matter, partitions add up, and an audit recomputes every number:

    support_cases, support_hits   by bin of the label's support: labelled patients, of them with
                                  this label
    track_cases, track_right      by bin of chance: labelled patients who were given the label, of
                                  them rightly
    cases, missed, misdiagnosed   labelled patients who had the label; of them, those for whom it
                                  had been excluded, and those who were given another as the answer
    answered, referred            diagnoses that name the label: as the answer, or as the guess of
                                  one that is referred

Chance: of patients with as much support for a label, the share that had it, read off a curve that
rises with the support (`calibration.py`); scaled to sum to one over the labels. It turns votes into
chances too. Without any opinion all labels have the same chance, and nothing is counted by support.

Answer: the labels with a miss target that cannot be excluded (`referral.py`). One: it is the
answer. Several, or none: `refer`. Labels without a target come in where no label with one is
possible: then the best of them is the answer. Without targets the fused label is the answer. An
ensemble that has learned fewer than `min_labels` labels refers every patient, and excludes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from learners.arrays.tables import CellTable, table_for
from learners.arrays.types import Bools, Floats, Ints
from learners.assessment.bins import (
    CHANCE_BINS,
    SUPPORT_BINS,
    chance_bins,
    millionths,
    odds_bins,
    support_odds,
)
from learners.assessment.calibration import calibrated, shift_of
from learners.assessment.referral import possible, ranks
from learners.errors import LearnerError
from learners.fusion.base import FusedPredictions
from learners.theory.promises import share_interval

_DIGITS = 4
"""Decimals of a chance, as it is shown."""

_REMEMBERED = 4096
"""How many intervals are cached before the oldest are dropped."""


class Counts(NamedTuple):
    """The columns of the table of counts, (K, …) each; see the top of this file."""

    support_cases: Ints
    support_hits: Ints
    track_cases: Ints
    track_right: Ints
    cases: Ints
    missed: Ints
    misdiagnosed: Ints
    answered: Ints
    referred: Ints


_BLOCKS = (SUPPORT_BINS, SUPPORT_BINS, CHANCE_BINS, CHANCE_BINS)
WIDTH = sum(_BLOCKS) + len(Counts._fields) - len(_BLOCKS)
"""How many integers are kept per label."""


_ENDS = tuple(accumulate(_BLOCKS, initial=0))
_COLUMNS = tuple(map(slice, _ENDS, _ENDS[1:]))


def counts_of(rows: Ints) -> Counts:
    """Split the rows of all labels into their columns."""
    return Counts(*(rows[:, columns] for columns in _COLUMNS), *rows[:, _ENDS[-1] :].T)


@dataclass(frozen=True, slots=True)
class Assessed:
    """How sure the diagnoses of a batch of n instances are.

    labels      (n,)   the answer, or the best guess of one that is referred
    possible    (n, K) the labels that were not excluded: the answer alone, or what it might be
    answered    (n,)   whether there is an answer; else the patient is referred
    untaught    whether that is so because too few labels have been learned
    support     (n, K) in millionths
    bins        (n, K) of the support
    chance      (n, K) as shown
    track       (n,)   the row of `records` about diagnoses like it
    records     cases, right, low, high: how they turned out
    learned     labels learned before
    """

    labels: Ints
    possible: Bools
    answered: Bools
    untaught: bool
    support: Ints
    bins: Ints
    chance: Floats
    track: Ints
    records: list[tuple[int, int, float, float]]
    learned: int

    @property
    def kept(self) -> list[bytes]:
        """What `learn` needs when the label comes; packed, since a million of these may wait."""
        chance = self.chance[np.arange(len(self.labels)), self.labels]
        return packed(self.bins, self.possible, chance_bins(chance))


def packed(bins: Ints, possible: Bools, track: Ints) -> list[bytes]:
    """Pack bins of support (n, K), possible labels (n, K) and bins of chance (n,), row by row."""
    bits = np.packbits(possible, axis=1, bitorder="little")
    rows = np.concatenate([track[:, None], bins, bits], axis=1).astype(np.uint8)
    width, data = rows.shape[1], rows.tobytes()
    return [data[at : at + width] for at in range(0, len(data), width)]


def unpacked(stored: Sequence[bytes], classes: int) -> tuple[Ints, Bools, Ints]:
    """Return what `packed` was given."""
    rows = np.frombuffer(b"".join(stored), np.uint8).reshape(len(stored), -1)
    bits = np.unpackbits(rows[:, 1 + classes :], axis=1, count=classes, bitorder="little")
    bins, track = rows[:, 1 : 1 + classes], rows[:, 0]
    return bins.astype(np.int64), bits.astype(np.bool_), track.astype(np.int64)


@dataclass(slots=True)
class Assessment:
    """What has been learned about how sure diagnoses are, for K labels.

    targets      each label's miss target; nan for those without
    min_labels   below so many learned labels every patient is referred
    """

    classes: int
    targets: Sequence[float] = ()
    min_labels: int = 0
    table: CellTable = field(init=False)
    _known: dict[tuple[int, int], tuple[float, float]] = field(init=False, default_factory=dict)
    _corrections: int = field(init=False, default=0)
    _drawn: tuple[bytes, Floats] = field(init=False, default=(b"", np.zeros(0)))

    def __post_init__(self) -> None:
        self.targets = tuple(self.targets) or (np.nan,) * self.classes
        if len(self.targets) != self.classes:
            raise LearnerError("there must be one miss target per label")
        self.table = table_for(self.classes, WIDTH)

    @property
    def rows(self) -> Ints:
        """Everything that was counted, (K, WIDTH)."""
        return np.asarray(self.table.rows(np.arange(self.classes)), np.int64)

    @property
    def controlled(self) -> bool:
        """Whether a label has a miss target."""
        return not np.isnan(self.targets).all()

    def assess(
        self,
        fused: FusedPredictions,
        learned: int | None = None,
        rows: Ints | None = None,
        corrections: int = 0,
    ) -> Assessed:
        """Say how sure each diagnosis of a batch is.

        `rows` stand in for what was counted here, where several partitions add up; `learned` is how
        many labels the ensemble has learned, those counted here unless told otherwise, and
        `corrections` how many of them were amended or withdrawn.
        """
        counts = counts_of(self.rows if rows is None else rows)
        labelled = int(counts.cases.sum()) if learned is None else learned
        support = millionths(fused.support)
        heard: Bools = np.asarray(support.any(axis=1))
        odds = support_odds(support)
        bins, along = odds_bins(odds)
        chance = self._chance(counts, odds, heard)
        labels, stays = self._answer(counts, bins, along, chance, fused.labels)
        untaught = labelled < self.min_labels
        stays[~heard | untaught] = True
        answered = heard & (stays.sum(axis=1) == 1) & (not untaught)
        chosen = np.where(answered, labels, fused.labels)
        cells = chosen * CHANCE_BINS + chance_bins(chance[np.arange(len(chosen)), chosen])
        track, records = self._records(counts, cells, corrections)
        return Assessed(
            chosen, stays, answered, untaught, support, bins, chance, track, records, labelled
        )

    def _chance(self, counts: Counts, odds: Floats, heard: Bools) -> Floats:
        chance = calibrated(odds, self._curve(counts))
        even = 1.0 / self.classes
        return np.asarray(np.where(heard[:, None], chance, even).round(_DIGITS), np.float64)

    def _curve(self, tally: Counts) -> Floats:
        """Return the calibration curve, drawn again when the counts have changed."""
        counts = tally.support_cases.tobytes() + tally.support_hits.tobytes()
        if self._drawn[0] != counts:
            self._drawn = counts, shift_of(tally.support_cases, tally.support_hits)
        return self._drawn[1]

    def _answer(
        self, counts: Counts, bins: Ints, along: Floats, chance: Floats, fused: Ints
    ) -> tuple[Ints, Bools]:
        """Return the answer where there is one, and the labels that cannot be excluded."""
        label = np.arange(self.classes)
        if not self.controlled:
            return fused, fused[:, None] == label
        targets = np.array(self.targets)
        rank = ranks(counts.support_hits, bins, along)
        # Patients without any opinion cannot be missed. Counted, they would be made up for by as
        # many misses as the target allows, all at once.
        stays = possible(rank, targets, counts.support_hits.sum(axis=1), counts.missed)
        free = np.isnan(targets)
        if free.any():
            best = np.where(free, chance, -1.0).argmax(axis=1)
            none = ~stays.any(axis=1, keepdims=True)
            stays |= none & (best[:, None] == label)
        return stays.argmax(axis=1), stays

    def _records(
        self, counts: Counts, cells: Ints, corrections: int
    ) -> tuple[Ints, list[tuple[int, int, float, float]]]:
        """Return which track record belongs to each diagnosis, and the records in use."""
        used = np.flatnonzero(np.bincount(cells, minlength=self.classes * CHANCE_BINS))
        pairs = list(
            zip(
                counts.track_cases.reshape(-1)[used].tolist(),
                counts.track_right.reshape(-1)[used].tolist(),
                strict=True,
            )
        )
        if corrections != self._corrections:
            self._known, self._corrections = {}, corrections
        if len(self._known) > _REMEMBERED:
            self._known = dict(list(self._known.items())[-_REMEMBERED // 2 :])
        new = [pair for pair in pairs if pair not in self._known]
        if new:
            self._find_intervals(new)
        return np.searchsorted(used, cells), [(*pair, *self._known[pair]) for pair in pairs]

    def _find_intervals(self, new: Sequence[tuple[int, int]]) -> None:
        """Find the intervals of some counts, rounded outwards as they are shown."""
        cases, right = np.array(new, np.int64).T
        low, high = share_interval(cases, right, corrections=self._corrections)
        ends = zip(
            (np.floor(low * 1e4) / 1e4).tolist(), (np.ceil(high * 1e4) / 1e4).tolist(), strict=True
        )
        self._known.update(zip(new, ends, strict=True))

    def note(self, labels: Ints, answered: Bools) -> None:
        """Count diagnoses by whether their label was an answer; no true label is needed."""
        self.table.bump(self.table.claim(labels), np.where(answered, WIDTH - 2, WIDTH - 1), 1)

    def learn(self, labels: Ints, truth: Ints, stored: Sequence[bytes], sign: int = 1) -> None:
        """Count labelled patients, from the labels they were given and what `Assessed.kept` kept.

        With `sign` -1 they are taken back.
        """
        K, n = self.classes, len(truth)
        bins, stayed, track = unpacked(stored, K)
        every, right = np.arange(n), labels == truth
        # Without an opinion no label has support; else at least one has some.
        heard = bins.any(axis=1)
        of, spoken = truth[heard], bins[heard]
        missed = ~stayed[every, truth]
        misdiagnosed = missed & (stayed.sum(axis=1) == 1)
        counted = Counts(
            support_cases=np.stack(
                [np.bincount(column, minlength=SUPPORT_BINS) for column in spoken.T]
            ),
            support_hits=_tallied(of, spoken[np.arange(len(of)), of], K, SUPPORT_BINS),
            track_cases=_tallied(labels, track, K, CHANCE_BINS),
            track_right=_tallied(labels[right], track[right], K, CHANCE_BINS),
            cases=np.bincount(truth, minlength=K),
            missed=np.bincount(truth[missed], minlength=K),
            misdiagnosed=np.bincount(truth[misdiagnosed], minlength=K),
            answered=np.zeros(K, np.int64),
            referred=np.zeros(K, np.int64),
        )
        self.table.add(np.arange(K), sign * np.column_stack(counted))


def _tallied(labels: Ints, bins: Ints, classes: int, width: int) -> Ints:
    """Return (K, width): how many patients there are of each label in each bin."""
    cells = np.bincount(labels * width + bins, minlength=classes * width)
    return cells.reshape(classes, width)
