"""The ensemble learner (EL) as a whole: join, fuse, settle, keep the score.

    1. join     predictions, contexts and labels by instance id (`learners.ledger`)
    2. fuse     all diagnoses of a batch at once (`learners.fusion`)
    3. settle   the labels that are there: losses, confusion counts, expected loss
    4. report   what to send: diagnoses, feedback to each LL, rejections

A prediction's payload is a sequence that begins with what the EL hears: whether the LL explores,
its accuracy estimate or None, its log-odds per label or None. A context's payload begins with its
cube. The rest of both is the caller's, and comes back with the settlement or the rejection.

With several partitions each has its own EL. It counts what it saw itself in `fusion`, and decides
by `judge`, whose tables `refresh` fills with what all partitions learned.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from learners.fusion import Ballot, Fusion, Verdict
from learners.ledger import Codec, Diagnose, Event, Expire, JoinRules, Ledger, Reject, Settle
from learners.metrics import confusion
from learners.seeds import seeds_of
from learners.tables import CellTable, table_for
from learners.types import Ints
from learners.window import Window

EXPLORING, ACCURACY, LOG_ODDS = range(3)
"""Where a payload holds what the EL hears."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a batch of events led to.

    diagnoses, verdict   the instances to diagnose, and row by row what was decided
    settled              the instances whose label is known, with what was kept of them
    cells                the context cubes that learned
    """

    diagnoses: list[Diagnose]
    verdict: Verdict
    settled: list[Settle]
    expiries: list[Expire]
    rejections: list[Reject]
    cells: Ints


class EnsembleLearner:
    """One partition's EL for K labels and the LLs that `fusion` was made for.

    unheard   the cube of instances whose context did not come; 0 without contexts
    """

    def __init__(
        self, fusion: Fusion, rules: JoinRules, *, unheard: int = 0, codec: Codec | None = None
    ) -> None:
        self.fusion = fusion
        self.judge = fusion
        self.refresh: Callable[[Ints], None] = lambda _cells: None
        self.unheard = unheard
        self.ledger = Ledger(rules, codec)
        scopes, K = 1 + fusion.learners, fusion.classes
        experts = len(fusion.experts([""] * fusion.learners))
        self.scores: CellTable = table_for(scopes, K * K)
        self.regret: CellTable = table_for(unheard + 1, 2 + experts)
        self.window = Window(scopes, K)

    def take(self, events: Iterable[Event], now: int = 0) -> Outcome:
        """Take in a batch of events, then move the clock to `now`."""
        step = self.ledger.apply(events, now)
        cells, verdict = self._decide(step.diagnoses)
        rows = zip(
            cells.tolist(),
            verdict.labels.tolist(),
            verdict.parts.tolist(),
            verdict.votes.tolist(),
            strict=True,
        )
        settled = self.ledger.settle(list(rows))
        learned = self.learn(settled)
        return Outcome(step.diagnoses, verdict, settled, step.expiries, step.rejections, learned)

    def _decide(self, diagnoses: Sequence[Diagnose]) -> tuple[Ints, Verdict]:
        cells = np.array(
            [self.unheard if d.context is None else d.context[0] for d in diagnoses], np.int64
        )
        if diagnoses:
            self.refresh(np.unique(cells))
        return cells, self.judge.decide(self._ballot(diagnoses, cells))

    def _ballot(self, cases: Sequence[Diagnose] | Sequence[Settle], cells: Ints) -> Ballot:
        M, K = self.fusion.learners, self.fusion.classes
        n = len(cases)
        labels = np.array([case.labels for case in cases], np.int64).reshape(n, M)
        heard = [payload for case in cases for payload in case.payloads]
        silent = [None] * K
        return Ballot.of(
            labels,
            seeds_of(case.id for case in cases),
            classes=K,
            cells=cells,
            exploring=np.array([p is not None and p[EXPLORING] for p in heard], np.bool_).reshape(
                n, M
            ),
            accuracy=np.array(
                [None if p is None else p[ACCURACY] for p in heard], np.float64
            ).reshape(n, M),
            log_odds=np.array(
                [silent if p is None else p[LOG_ODDS] or silent for p in heard], np.float64
            ).reshape(n, M, K),
        )

    def learn(self, settled: Sequence[Settle]) -> Ints:
        """Count what the labels say; return the context cubes that changed."""
        if not settled:
            return np.zeros(0, np.int64)
        truth = np.array([case.label for case in settled], np.int64)
        kept = zip(*(case.decision for case in settled), strict=True)
        cells, labels, parts, votes = (np.array(column, np.int64) for column in kept)
        ballot = self._ballot(settled, cells)
        verdict = Verdict.recalled(labels, parts, votes)
        self.fusion.learn(ballot, verdict, truth)
        self._count(ballot, verdict, truth, [case.at for case in settled])
        return np.unique(cells)

    def _count(self, ballot: Ballot, verdict: Verdict, truth: Ints, at: list[int]) -> None:
        predicted = np.concatenate([verdict.labels[:, None], ballot.labels], axis=1)
        counts = confusion(truth, predicted.T, self.fusion.classes)
        self.scores.add(np.arange(len(counts)), counts.reshape(len(counts), -1))
        self.window.push(np.array(at, np.int64), truth, predicted)
        wrong = (verdict.votes != truth[:, None]) & (verdict.votes >= 0)
        sums = np.concatenate(
            [np.ones((len(truth), 1), np.int64), verdict.expected_loss(truth)[:, None], wrong],
            axis=1,
        )
        self.regret.add(ballot.cells, sums)
