"""What the ensemble learner sends: diagnoses to whoever reads them, feedback to local learners."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, product

import numpy as np
from msgspec.structs import replace

from agents.agent_metrics import DIAGNOSED
from agents.log_odds import LogOddsFormat
from learners.arrays.shares import UNIT
from learners.arrays.types import MISSING, Floats
from learners.assessment.assessment import Assessed
from learners.assessment.bins import MILLION
from learners.ensemble import Outcome
from learners.fusion.base import Verdict
from learners.join import Correct, Diagnose, Settle
from learners.payloads import ContextPayload
from schemas.records import REFER, Diagnosis, Feedback, Opinion, TrackRecord
from schemas.writing import by_name, encode_all
from settings.model import Settings
from streams.engine.outbox import Outbox
from streams.kafka.topics import Topics


def _bases(verdict: Verdict) -> list[tuple[int, ...] | None]:
    if verdict.basis is None:
        return [None] * len(verdict.labels)
    return list(map(tuple, verdict.basis.tolist()))


class EnsembleOutputs:
    """Builds and sends records from what the ensemble learner decided and settled."""

    def __init__(self, settings: Settings, experts: Sequence[str]) -> None:
        self._topics = Topics.of(settings)
        self._labels = settings.labels
        self._names = list(settings.learners)
        self._mode = settings.ensemble.mode
        self._experts = list(experts)
        self._log_odds = LogOddsFormat(settings)
        self._joint = [learner.joint for learner in settings.learners.values()]
        self._chance, self._weights = by_name(self._labels), by_name(self._experts)

    @property
    def joint(self) -> bool:
        """Whether a local learner is told the log-odds of the others."""
        return any(self._joint)

    def send_diagnoses(self, outcome: Outcome, out: Outbox) -> None:
        """Send the diagnoses of a batch."""
        if not outcome.diagnoses:
            return
        labels, names, mode, opinions = self._labels, self._names, self._mode, self._opinions
        weights_of, chance_of = self._weights, self._chance
        sure, learned = outcome.assessed, outcome.assessed.learned
        decided = zip(
            outcome.diagnoses,
            sure.labels.tolist(),
            (outcome.verdict.parts / UNIT).tolist(),
            self._votes(outcome.verdict),
            _bases(outcome.verdict),
            sure.answered.tolist(),
            self._cannot_exclude(sure),
            sure.chance.tolist(),
            _records(sure),
            (sure.support / MILLION).tolist(),
            map(_heard, outcome.diagnoses),
            strict=True,
        )
        records = [
            Diagnosis(
                case.id,
                labels[label],
                case.complete,
                tuple([names[i] for i in case.missing]) if case.missing else (),
                mode,
                weights_of(*share),
                opinions(case),
                case.at,
                None if case.context is None else str(ContextPayload(*case.context).cube),
                votes,
                basis,
                labels[label] if answered else REFER,
                left,
                chance_of(*chance),
                record,
                remarks if answered else _referred(sure, left, support) + remarks,
                learned,
                tuple(support),
                subject,
                history,
            )
            for case, label, share, votes, basis, answered, left, chance, record, support, (
                remarks,
                subject,
                history,
            ) in decided
        ]
        keys = [case.id.encode() for case in outcome.diagnoses]
        times = [case.at for case in outcome.diagnoses]
        values = encode_all(records)
        out.emit_many(self._topics.diagnoses, keys, values, times)
        out.notes.keep(DIAGNOSED, values)

    def _cannot_exclude(self, sure: Assessed) -> list[tuple[str, ...]]:
        """Return what referred patients may have; nothing for the others."""
        left: list[tuple[str, ...]] = [()] * len(sure.labels)
        for row in np.flatnonzero(~sure.answered).tolist():
            left[row] = tuple(compress(self._labels, sure.possible[row].tolist()))
        return left

    def _opinions(self, case: Diagnose) -> dict[str, Opinion]:
        labels = self._labels
        return {
            name: Opinion(
                labels[label] if label >= 0 else None,
                payload.rule,
                payload.exploring,
                payload.trials,
                payload.accuracy,
                payload.low,
                payload.high,
                payload.epsilon,
                payload.missing,
            )
            for name, label, payload in zip(self._names, case.labels, case.payloads, strict=True)
            if payload is not None
        }

    def _votes(self, verdict: Verdict) -> list[dict[str, str] | None]:
        """Return the votes of experts other than the learners, which are in the record anyway."""
        if self._experts == self._names:
            return [None] * len(verdict.labels)
        labels, experts = self._labels, self._experts
        return [
            {expert: labels[i] for expert, i in zip(experts, row, strict=True) if i >= 0}
            for row in verdict.votes.tolist()
        ]

    def send_feedback(
        self, settled: Sequence[Settle], out: Outbox, others: Floats | None = None
    ) -> None:
        """Send each local learner the labels of its predictions: of each instance, the first.

        `others` (n, M, K) are the other learners' log-odds, for learners that learn jointly.
        """
        all_keys = [case.id.encode() for case in settled]
        for i, name in enumerate(self._names):
            cases, keys, told = settled, all_keys, others
            if any(case.payloads[i] is None for case in settled):
                heard = [k for k, case in enumerate(settled) if case.payloads[i] is not None]
                cases, keys = [settled[k] for k in heard], [all_keys[k] for k in heard]
                told = None if others is None else others[heard]
            if cases:
                values = encode_all(self._feedback(cases, i, self._others(i, len(cases), told)))
                times = [case.at for case in cases]
                out.emit_many(self._topics.feedback(name), keys, values, times, urgent=False)

    def send_corrections(self, corrected: Sequence[Correct], out: Outbox) -> None:
        """Send each local learner what has changed about the labels of its predictions."""
        labels: dict[int, str | None] = dict(enumerate(self._labels)) | {MISSING: None}
        for i, name in enumerate(self._names):
            heard = [each for each in corrected if each.case.payloads[i] is not None]
            if not heard:
                continue
            told = self._feedback([each.case for each in heard], i, [None] * len(heard))
            values = encode_all(
                replace(feedback, amends=True, was=labels[each.was])
                for feedback, each in zip(told, heard, strict=True)
            )
            keys = [each.case.id.encode() for each in heard]
            times = [each.case.at for each in heard]
            out.emit_many(self._topics.feedback(name), keys, values, times, urgent=False)

    def _others(
        self, learner: int, n: int, others: Floats | None
    ) -> Sequence[tuple[float, ...] | None]:
        """Return what a learner is told of the others, as it travels."""
        if others is None or not self._joint[learner]:
            return [None] * n
        return self._log_odds.send(others[:, learner])

    def _feedback(
        self, cases: Sequence[Settle], learner: int, others: Sequence[tuple[float, ...] | None]
    ) -> Iterator[Feedback]:
        labels, joint = self._labels, self._joint[learner]
        known: dict[int, str | None] = dict(enumerate(labels)) | {MISSING: None}
        for case, heard in zip(cases, others, strict=True):
            payload = case.payloads[learner]
            yield Feedback(
                case.id,
                known[case.label],
                labels[label] if (label := case.labels[learner]) >= 0 else None,
                payload.phase,
                payload.cube,
                payload.rule,
                case.at,
                payload.votes,
                others=heard,
                log_odds=self._log_odds.shorten(payload.log_odds) if joint else None,
            )


def _records(sure: Assessed) -> Iterable[TrackRecord]:
    """Return the track record of each diagnosis; many share one."""
    made = [TrackRecord(*record) for record in sure.records]
    return [made[at] for at in sure.track.tolist()]


def _heard(case: Diagnose) -> tuple[tuple[str, ...], str | None, bool]:
    """Return what there is to know of the learners' opinions, whose visit it is, and of when.

    The person is the one that the first learner names; one that is of the past says so.
    """
    gaps = new = history = False
    subject: str | None = None
    for payload in case.payloads:  # the one loop over opinions, for every diagnosis
        if payload is not None:
            gaps = gaps or payload.missing > 0
            new = new or not payload.trials
            history = history or payload.history
            if subject is None:
                subject = payload.subject
    return _REMARKS[bool(case.missing), gaps, new], subject, history


_REMARKS: dict[tuple[bool, ...], tuple[str, ...]] = {
    there: tuple(compress(("learner_missing", "value_missing", "new_cube"), there))
    for there in product((False, True), repeat=3)
}


def _referred(sure: Assessed, left: tuple[str, ...], support: Sequence[float]) -> tuple[str, ...]:
    """Say why a patient is referred."""
    opinion = any(support)
    if sure.untaught:
        why = ("few_labels" if sure.learned else "no_labels",)
        return why if opinion else (*why, "no_opinion")
    if not opinion:
        return ("no_opinion",)
    return ("several_possible" if left else "none_fits",)
