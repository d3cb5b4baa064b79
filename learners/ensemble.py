"""The ensemble learner (EL) as a whole: join, fuse, settle, keep the score.

    1. join     predictions, contexts and labels by instance id (`learners.join`)
    2. fuse     all diagnoses of a batch at once (`learners.fusion.base`)
    3. assess   how sure they are: chance, answer, track record (`learners.assessment`)
    4. settle   the labels that are there: losses, confusion counts, expected loss, assessment
    5. correct  labels that were amended or withdrawn: take back what they counted, recount
    6. report   what to send: diagnoses, feedback to each LL, rejections

Predictions come with a `PredictionPayload`, contexts with a `ContextPayload`; both come back with
the settlement or the rejection.

With several partitions each has its own EL. It counts what it has seen itself in `fusion` and
`assessment`, and decides by `judge`, whose tables `refresh` fills with what all partitions have
learned, and by the `experience` of all of them.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import nan
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from learners.arrays.seeds import seeds_of
from learners.arrays.tables import CellTable, table_for
from learners.arrays.types import MISSING, Bools, Floats, Ints
from learners.assessment.assessed_fusion import guessed
from learners.assessment.assessment import Assessed, Assessment
from learners.fusion.ballot_log_odds import log_odds_of_others
from learners.fusion.base import UNKNOWN, Ballot, FusedPredictions, Fusion
from learners.join import (
    Codec,
    Correct,
    Diagnose,
    Erase,
    Event,
    Expire,
    JoinRules,
    Ledger,
    Reject,
    Settle,
)
from learners.payloads import NOTHING_HEARD, ContextPayload, Decision, Decisions, PredictionPayload
from learners.scores.error_rates import confusion
from learners.scores.window import Window

_Cases: TypeAlias = Sequence[Diagnose] | Sequence[Settle]
_Decided: TypeAlias = tuple[FusedPredictions, Assessed, Sequence[Sequence[Any]]]
"""What was decided on a batch; the last is what the ledger keeps: the fields of `Decision`s."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a batch of events led to.

    diagnoses, fused   the instances to diagnose, and row by row what was decided
    assessed             and how sure that is
    settled              the instances whose label is known, with what was kept of them
    corrected            those whose label has changed since
    cells                the context cubes that learned
    """

    diagnoses: list[Diagnose]
    fused: FusedPredictions
    assessed: Assessed
    settled: list[Settle]
    corrected: list[Correct]
    expiries: list[Expire]
    rejections: list[Reject]
    cells: Ints


class Experience(NamedTuple):
    """What diagnoses are assessed by.

    labels        how many were learned
    rows          what the assessment counted of them
    corrections   how often one of them was amended or withdrawn
    """

    labels: int
    rows: Ints
    corrections: int


class EnsembleLearner:
    """One partition's EL for K labels and the LLs that `fusion` was made for.

    unheard   the cube of instances whose context did not come; 0 without contexts

    What it counts beside the losses of `fusion`, all integers:

    scores    by scope (the EL, then each LL): confusion counts; then, in the same order, those of
              past patients, so that old errors are not part of the current rates
    regret    by context cube: labelled instances; the EL's expected loss in parts; each expert's
              errors; the EL's expected loss on the instances on which that expert was awake
    tally     diagnoses on which the LLs did not agree, diagnoses by label; no label is needed
    latest    when the latest diagnosis was made, and each expert's share of it in parts
    """

    def __init__(
        self,
        fusion: Fusion,
        rules: JoinRules,
        *,
        assessment: Assessment | None = None,
        unheard: int = 0,
        codec: Codec | None = None,
    ) -> None:
        self.fusion = fusion
        self.judge = fusion
        self.assessment = assessment or Assessment(fusion.classes)
        self.refresh: Callable[[Ints], None] = lambda _cells: None
        self.experience: Callable[[], Experience] = self.own_experience
        self.unheard = unheard
        self.ledger = Ledger(rules, codec)
        scopes, K = 1 + fusion.learners, fusion.classes
        experts = len(fusion.experts([""] * fusion.learners))
        self.scores: CellTable = table_for(2 * scopes, K * K)
        self.regret: CellTable = table_for(unheard + 1, 2 + 2 * experts)
        self.tally: CellTable = table_for(1, 1 + K)
        self.latest: CellTable = table_for(1, 1 + experts)
        self.window = Window(scopes, K)
        none = np.zeros((0, experts), np.int64)
        fused = FusedPredictions(np.zeros(0, np.int64), none, none, np.zeros((0, K)))
        self._nothing: _Decided = fused, self.assessment.assess(fused), []

    def take(
        self,
        events: Iterable[Event | Erase],
        now: int = 0,
        *,
        live: int = 0,
        awaited: Sequence[int] = (),
    ) -> Outcome:
        """Take in a batch of events, then move the clock to `now`; see `Ledger.apply`."""
        step = self.ledger.apply(events, now, live=live, awaited=awaited)
        decided = self._decide(step.diagnoses) if step.diagnoses else self._nothing
        fused, assessed, decisions = decided
        settled = self.ledger.settle(decisions)
        learned = self.learn(settled)
        if step.corrections:
            learned = np.union1d(learned, self.correct(step.corrections))
        return Outcome(
            step.diagnoses,
            fused,
            assessed,
            settled,
            step.corrections,
            step.expiries,
            step.rejections,
            learned,
        )

    def own_experience(self) -> Experience:
        """Return what this partition has learned."""
        labels = int(self.scores.rows(self.whole).sum())
        return Experience(labels, self.assessment.rows, self.ledger.corrections)

    @property
    def whole(self) -> Ints:
        """The rows of `scores` that hold every label once: the EL's own, present and past."""
        return np.array([0, 1 + self.fusion.learners])

    def _decide(self, diagnoses: Sequence[Diagnose]) -> _Decided:
        cells = np.array(
            [
                self.unheard if case.context is None else ContextPayload(*case.context).cube
                for case in diagnoses
            ],
            np.int64,
        )
        self.refresh(np.unique(cells))
        heard = _payloads(diagnoses)
        ballot = self._ballot(diagnoses, heard, cells, self.judge.hears)
        ballot = replace(ballot, waiting=self._waiting(len(cells)))
        fused = guessed(self.judge.decide(ballot), self.judge.prefer)
        assessed = self.assessment.assess(fused, *self.experience())
        fused = replace(fused, labels=assessed.labels)
        self._note(ballot, fused, diagnoses[-1].at)
        self.assessment.note(assessed.labels, assessed.answered)
        decisions = zip(
            cells.tolist(),
            fused.labels.tolist(),
            fused.parts.tolist(),
            fused.votes.tolist(),
            [()] * len(cells) if fused.basis is None else fused.basis.tolist(),
            assessed.kept,
            self._of_history(heard),
            strict=True,
        )
        return fused, assessed, list(decisions)

    def _of_history(self, heard: Sequence[PredictionPayload]) -> Iterable[bool]:
        """Tell which are past patients: at least one of their predictions says so."""
        marks = [payload.history for payload in heard]
        if not any(marks):
            return [False] * (len(marks) // self.fusion.learners)
        M = self.fusion.learners
        return [any(marks[k : k + M]) for k in range(0, len(marks), M)]

    def _waiting(self, count: int) -> Ints:
        """Return how many decisions wait for their labels when each of a batch is made.

        The decisions of a batch are made at once, so each waits for all before it.
        """
        return self.ledger.waiting + np.arange(count)

    def _note(self, ballot: Ballot, fused: FusedPredictions, at: int) -> None:
        """Count what can be counted without labels."""
        K, only = self.fusion.classes, np.zeros(1, np.int64)
        highest = ballot.labels.max(axis=1)
        lowest = np.where(ballot.present, ballot.labels, K).min(axis=1)
        by_label = np.bincount(fused.labels, minlength=K)
        self.tally.add(only, np.r_[(lowest < highest).sum(), by_label][None])
        self.latest.put(only, np.r_[at, fused.parts[-1]][None])

    def _ballot(
        self, cases: _Cases, heard: Sequence[PredictionPayload], cells: Ints, parts: Collection[str]
    ) -> Ballot:
        """Return the ballot on some instances, with those parts of it that the rule hears."""
        M, K = self.fusion.learners, self.fusion.classes
        n = len(cases)
        odds = [payload.log_odds for payload in heard] if "log_odds" in parts else []
        silent = (nan,) * K
        return Ballot.of(
            # Having no opinion counts as having spoken in the join, and as silence in a ballot.
            np.maximum(_table([case.labels for case in cases], M), MISSING),
            seeds_of(case.id for case in cases) if "seeds" in parts else np.zeros(n, np.uint64),
            classes=K,
            cells=cells,
            exploring=np.array([payload.exploring for payload in heard], np.bool_).reshape(n, M)
            if "exploring" in parts
            else None,
            accuracy=_floats([payload.accuracy for payload in heard]).reshape(n, M)
            if "accuracy" in parts
            else None,
            # Most learners have no log-odds, and building rows of nan is expensive.
            log_odds=np.array([row or silent for row in odds], np.float64).reshape(n, M, K)
            if any(odds)
            else None,
        )

    def others(self, settled: Sequence[Settle]) -> Floats:
        """Return (n, M, K): for each LL, the log-odds of all other LLs on each instance."""
        cells = np.zeros(len(settled), np.int64)
        parts = ("accuracy", "log_odds")
        return log_odds_of_others(self._ballot(settled, _payloads(settled), cells, parts))

    def learn(self, settled: Sequence[Settle]) -> Ints:
        """Count what the labels say; return the context cubes that changed."""
        if not settled:
            return np.zeros(0, np.int64)
        truth, kept, ballot, fused = self._recall(settled)
        self.fusion.learn(ballot, fused, truth)
        past = np.array(kept.history, np.bool_)
        predicted = self._count(ballot, fused, truth, past)
        at = np.array([case.at for case in settled])
        self.window.push(at, np.where(past, MISSING, truth), predicted)
        learn_sureness(self.assessment, kept.sure, fused.labels, truth)
        return np.unique(ballot.cells)

    def correct(self, corrections: Sequence[Correct]) -> Ints:
        """Recount labels that have changed; return the context cubes that changed.

        All integers are then as if the last label had been the only one, except for two that are
        not counts: the highest pace of Hedge's learning rate, which never falls, and the time at
        which the label came, which stays that of the first one.
        """
        back = [replace(correction.case, label=correction.was) for correction in corrections]
        cases = [correction.case for correction in corrections]
        cells = [self._recount(back, -1), self._recount(cases, 1)]
        past = [Decision(*case.decision).history for case in cases]
        truth = np.where(past, MISSING, [case.label for case in cases])
        self.window.amend(np.array([correction.serial for correction in corrections]), truth)
        return np.union1d(*cells)

    def _recount(self, cases: Sequence[Settle], sign: int) -> Ints:
        """Count labels, or take them back; what has no label is left out."""
        cases = [case for case in cases if case.label != MISSING]
        if not cases:
            return np.zeros(0, np.int64)
        truth, kept, ballot, fused = self._recall(cases)
        self.fusion.recount(ballot, fused, truth, sign)
        self._count(ballot, fused, truth, np.array(kept.history, np.bool_), sign)
        learn_sureness(self.assessment, kept.sure, fused.labels, truth, sign)
        return np.unique(ballot.cells)

    def _recall(
        self, settled: Sequence[Settle]
    ) -> tuple[Ints, Decisions, Ballot, FusedPredictions]:
        """Return the labels of instances, and what was said and decided before they came."""
        truth = np.array([case.label for case in settled], np.int64)
        kept = Decisions.of([case.decision for case in settled])
        experts = len(kept.parts[0])
        # Learning draws nothing: what was drawn is in the decision.
        hears = set(self.fusion.hears) - {"seeds"}
        heard = _payloads(settled) if hears else ()
        ballot = self._ballot(settled, heard, np.array(kept.cell, np.int64), hears)
        fused = FusedPredictions.recalled(
            np.array(kept.label, np.int64),
            _table(kept.parts, experts),
            _table(kept.votes, experts),
            _bases(kept.basis),
        )
        return truth, kept, ballot, fused

    def _count(
        self, ballot: Ballot, fused: FusedPredictions, truth: Ints, past: Bools, sign: int = 1
    ) -> Ints:
        """Count errors and losses, or take them back; return what each scope predicted."""
        predicted = np.concatenate([fused.labels[:, None], ballot.labels], axis=1)
        for start, group in ((0, ~past), (predicted.shape[1], past)):
            if group.any():
                counts = sign * confusion(truth[group], predicted[group].T, self.fusion.classes)
                self.scores.add(start + np.arange(len(counts)), counts.reshape(len(counts), -1))
        heard = self.fusion.awake(ballot, fused)
        wrong = (fused.votes != truth[:, None]) & heard
        expected = fused.expected_loss(truth)[:, None]
        ones = np.ones_like(expected)
        sums = np.concatenate([ones, expected, wrong, heard * expected], axis=1)
        self.regret.add(ballot.cells, sign * sums)
        return predicted


def _payloads(cases: _Cases) -> list[PredictionPayload]:
    """Return the predictions' payloads, instance by instance and LL by LL."""
    return [
        NOTHING_HEARD if payload is None else payload for case in cases for payload in case.payloads
    ]


def _table(rows: Sequence[Sequence[int]], width: int) -> Ints:
    """Return rows as one array; numpy takes twice as long for rows within rows."""
    flat = np.fromiter(chain.from_iterable(rows), np.int64, len(rows) * width)
    return flat.reshape(len(rows), width)


def _bases(bases: Sequence[Sequence[int]]) -> Ints | None:
    """Return what decisions were based on; None if that was kept of none of them."""
    width = max(map(len, bases))
    unknown = (UNKNOWN,) * width
    rows = bases if all(bases) else [basis or unknown for basis in bases]
    return _table(rows, width) if width else None


def learn_sureness(
    assessment: Assessment, kept: Sequence[bytes], labels: Ints, truth: Ints, sign: int = 1
) -> None:
    """Count how sure decisions were, or take it back; those without an assessment are left out."""
    if not all(kept):
        at = [k for k, sure in enumerate(kept) if sure]
        kept, labels, truth = [kept[k] for k in at], labels[at], truth[at]
    if kept:
        assessment.learn(labels, truth, kept, sign)


def _floats(column: list[float | None]) -> Floats:
    """Return a column as numbers, nan for None."""
    known = [nan if number is None else number for number in column] if None in column else column
    return np.array(known, np.float64)
