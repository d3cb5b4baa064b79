"""What the ensemble learner sends: diagnoses for their readers, feedback for local learners."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, product, repeat

import numpy as np
from msgspec.structs import replace

from agents.agent_metrics import DIAGNOSED
from agents.log_odds import LogOddsFormat
from learners.arrays.shares import UNIT
from learners.arrays.types import Floats
from learners.assessment.assessment import Assessed
from learners.assessment.bins import MILLION
from learners.ensemble import Outcome
from learners.fusion.base import FusedPredictions
from learners.join import Correct, Diagnose, Settle
from learners.payloads import ContextPayload
from schemas.records import REFER, Diagnosis, Feedback, Opinion, TrackRecord
from schemas.traces import as_header
from schemas.writing import by_name, encode_all, once
from settings.model import Settings
from streams.engine.outbox import Outbox
from streams.kafka.topics import Topics

_NOTHING: tuple[str, ...] = ()


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
        self._by_learner = by_name(self._names)
        # By its index: the last two stand for no label, since these have negative numbers.
        self._label_of = (*self._labels, None, None)

    @property
    def joint(self) -> bool:
        """Whether a local learner is told the log-odds of the others."""
        return any(self._joint)

    def send_diagnoses(self, outcome: Outcome, out: Outbox) -> None:
        """Send the diagnoses of a batch."""
        cases, sure, fused = outcome.diagnoses, outcome.assessed, outcome.fused
        if not cases:
            return
        ids, times = [case.id for case in cases], [case.at for case in cases]
        given = [self._labels[i] for i in sure.labels.tolist()]
        remarks, subjects, history, traces = zip(*map(_heard, cases), strict=True)
        answers, left, why = self._referred(sure, given, list(remarks))
        # Columns in the order of the record's fields, so that no Python loop runs over the records.
        records = map(
            Diagnosis,
            ids,
            given,
            [case.complete for case in cases],
            [self._named(case.missing) if case.missing else () for case in cases],
            repeat(self._mode),
            _shared(fused.parts / UNIT, self._weights),
            self._opinions(cases),
            times,
            _cubes(cases),
            self._votes(fused),
            repeat(None) if fused.basis is None else fused.basis.tolist(),
            answers,
            left,
            _shared(sure.chance, self._chance),
            _records(sure),
            why,
            repeat(sure.learned),
            _shared(sure.support / MILLION, _listed),
            subjects,
            history,
        )
        values = encode_all(records)
        keys = [name.encode() for name in ids]
        traced = {k: as_header(trace) for k, trace in enumerate(traces) if trace is not None}
        out.emit_many(self._topics.diagnoses, keys, values, times, headers=traced)
        out.notes.keep(DIAGNOSED, values)

    def _named(self, learners: Iterable[int]) -> tuple[str, ...]:
        return tuple([self._names[i] for i in learners])

    def _referred(
        self, sure: Assessed, given: Sequence[str], remarks: list[tuple[str, ...]]
    ) -> tuple[list[str], list[tuple[str, ...]], list[tuple[str, ...]]]:
        """Return the answers, the labels that referred patients may have, and the remarks."""
        answers, left = list(given), [_NOTHING] * len(given)
        for row in np.flatnonzero(~sure.answered).tolist():
            answers[row] = REFER
            left[row] = tuple(compress(self._labels, sure.possible[row].tolist()))
            remarks[row] = _why_referred(sure, row, left[row]) + remarks[row]
        return answers, left, remarks

    def _opinions(self, cases: Sequence[Diagnose]) -> Iterable[object]:
        """Return what each learner contributed to each diagnosis, to be written by name."""
        label_of = self._label_of
        opinions = [
            None
            if payload is None
            else Opinion(
                label_of[label],
                payload.rule,
                payload.exploring,
                payload.trials,
                payload.accuracy,
                payload.low,
                payload.high,
                payload.epsilon,
                payload.missing,
            )
            for case in cases
            for label, payload in zip(case.labels, case.payloads, strict=True)
        ]
        names, M = self._names, len(self._names)
        if None not in opinions:
            return map(self._by_learner, *[opinions[i::M] for i in range(M)])
        by_case = (zip(names, opinions[k : k + M], strict=True) for k in range(0, len(opinions), M))
        return [
            {name: opinion for name, opinion in pairs if opinion is not None} for pairs in by_case
        ]

    def _votes(self, fused: FusedPredictions) -> Iterable[dict[str, str] | None]:
        """Return the votes of experts other than the learners, which are in the record anyway."""
        if self._experts == self._names:
            return repeat(None)
        labels, experts = self._labels, self._experts
        return [
            {expert: labels[i] for expert, i in zip(experts, row, strict=True) if i >= 0}
            for row in fused.votes.tolist()
        ]

    def send_feedback(
        self, settled: Sequence[Settle], out: Outbox, others: Floats | None = None
    ) -> None:
        """Send each local learner the labels of its predictions: of each instance, the first.

        `others` (n, M, K) are the other learners' log-odds, for learners that learn jointly.
        """
        all_keys = [case.id.encode() for case in settled]
        for i, name in enumerate(self._names):
            cases, keys, others_log_odds = settled, all_keys, others
            payloads = [case.payloads[i] for case in settled]
            if None in payloads:
                heard = [k for k, payload in enumerate(payloads) if payload is not None]
                cases, keys = [settled[k] for k in heard], [all_keys[k] for k in heard]
                others_log_odds = None if others is None else others[heard]
            if cases:
                values = encode_all(self._feedback(cases, i, self._others(i, others_log_odds)))
                times = [case.at for case in cases]
                out.emit_many(self._topics.feedback(name), keys, values, times, urgent=False)

    def send_corrections(self, corrected: Sequence[Correct], out: Outbox) -> None:
        """Send each local learner what has changed about the labels of its predictions."""
        if not corrected:
            return
        for i, name in enumerate(self._names):
            known = [
                correction for correction in corrected if correction.case.payloads[i] is not None
            ]
            if not known:
                continue
            records = self._feedback([correction.case for correction in known], i, repeat(None))
            values = encode_all(
                replace(feedback, amends=True, was=self._label_of[correction.was])
                for feedback, correction in zip(records, known, strict=True)
            )
            keys = [correction.case.id.encode() for correction in known]
            times = [correction.case.at for correction in known]
            out.emit_many(self._topics.feedback(name), keys, values, times, urgent=False)

    def _others(self, learner: int, others: Floats | None) -> Iterable[tuple[float, ...] | None]:
        """Return what a learner is told of the others, as it travels."""
        if others is None or not self._joint[learner]:
            return repeat(None)
        return self._log_odds.send(others[:, learner])

    def _feedback(
        self, cases: Sequence[Settle], learner: int, others: Iterable[tuple[float, ...] | None]
    ) -> Iterator[Feedback]:
        label_of, shorten = self._label_of, self._log_odds.shorten
        payloads = [case.payloads[learner] for case in cases]
        # Columns in the order of the record's fields, so that no Python loop runs over the records.
        return map(
            Feedback,
            [case.id for case in cases],
            [label_of[case.label] for case in cases],
            [label_of[case.labels[learner]] for case in cases],
            [payload.phase for payload in payloads],
            [payload.cube for payload in payloads],
            [payload.rule for payload in payloads],
            [case.at for case in cases],
            [payload.votes for payload in payloads],
            others,
            [shorten(payload.log_odds) for payload in payloads]
            if self._joint[learner]
            else repeat(None),
        )


def _shared(rows: Floats, make: Callable[..., object]) -> list[object]:
    """Return what is made of each row; if few of them differ, each distinct one is written once."""
    data, width = np.ascontiguousarray(rows).tobytes(), rows.shape[1] * rows.itemsize
    keys = [data[at : at + width] for at in range(0, len(data), width)]
    distinct = dict(zip(keys, range(len(keys)), strict=True))
    if 2 * len(distinct) > len(keys):
        return [make(*row) for row in rows.tolist()]
    written = {key: once(make(*rows[at].tolist())) for key, at in distinct.items()}
    return [written[key] for key in keys]


def _listed(*numbers: float) -> tuple[float, ...]:
    return numbers


def _cubes(cases: Sequence[Diagnose]) -> list[str | None]:
    """Return the cube of each context that came."""
    return [
        None if case.context is None else str(ContextPayload(*case.context).cube) for case in cases
    ]


def _records(sure: Assessed) -> Iterable[object]:
    """Return the track record of each diagnosis; many share one."""
    track_records = [once(TrackRecord(*record)) for record in sure.records]
    return [track_records[at] for at in sure.track.tolist()]


def _heard(case: Diagnose) -> tuple[tuple[str, ...], str | None, bool, bytes | None]:
    """Return what there is to know of the learners' opinions, whose visit it is, when, its trace.

    Person and trace are those that the first learner names; a past patient is marked as such.
    """
    gaps = new = history = False
    subject: str | None = None
    trace: bytes | None = None
    for payload in case.payloads:  # the one loop over opinions, for every diagnosis
        if payload is not None:
            gaps = gaps or payload.missing > 0
            new = new or not payload.trials
            history = history or payload.history
            if subject is None:
                subject = payload.subject
            if trace is None:
                trace = payload.trace
    return _REMARKS[bool(case.missing), gaps, new], subject, history, trace


_REMARKS: dict[tuple[bool, ...], tuple[str, ...]] = {
    there: tuple(compress(("learner_missing", "value_missing", "new_cube"), there))
    for there in product((False, True), repeat=3)
}


def _why_referred(sure: Assessed, row: int, left: tuple[str, ...]) -> tuple[str, ...]:
    """Say why a patient is referred."""
    opinion = bool(sure.support[row].any())
    if sure.untaught:
        why = ("few_labels" if sure.learned else "no_labels",)
        return why if opinion else (*why, "no_opinion")
    if not opinion:
        return ("no_opinion",)
    return ("several_possible" if left else "none_fits",)
