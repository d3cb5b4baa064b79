"""What the ensemble learner sends: diagnoses to whoever reads them, feedback to local learners."""

from collections.abc import Sequence

from learners.ensemble import ACCURACY, EXPLORING, Outcome
from learners.fusion import Verdict
from learners.ledger import Settle
from learners.shares import UNIT
from schemas.codec import encode_all
from schemas.records import Diagnosis, Feedback, Opinion
from streams.settings import Settings
from streams.tasks.outbox import Outbox
from streams.topics import Topics

RULE, TRIALS, LOW, HIGH, EPSILON, PHASE, CUBE, VOTES = range(3, 11)
"""What follows in a prediction's payload after what the ensemble learner hears."""


class Reports:
    """Builds and sends records from what the ensemble learner decided and settled."""

    def __init__(self, settings: Settings, experts: Sequence[str]) -> None:
        self._topics = Topics.of(settings)
        self._labels = settings.labels
        self._names = list(settings.learners)
        self._mode = settings.ensemble.mode
        self._experts = list(experts)

    def send_diagnoses(self, outcome: Outcome, out: Outbox) -> None:
        """Send the diagnoses of a batch."""
        if not outcome.diagnoses:
            return
        labels, names, experts, mode = self._labels, self._names, self._experts, self._mode
        shares = (outcome.verdict.parts / UNIT).tolist()
        decided = zip(
            outcome.diagnoses,
            outcome.verdict.labels.tolist(),
            shares,
            self._votes(outcome.verdict),
            strict=True,
        )
        records = [
            Diagnosis(
                case.id,
                labels[label],
                case.complete,
                tuple(names[i] for i in case.missing),
                mode,
                dict(zip(experts, share, strict=True)),
                {
                    name: Opinion(
                        labels[said], p[RULE], p[EXPLORING], p[TRIALS], p[ACCURACY], *p[LOW:PHASE]
                    )
                    for name, said, p in zip(names, case.labels, case.payloads, strict=True)
                    if p is not None
                },
                case.at,
                None if case.context is None else str(case.context[0]),
                votes,
            )
            for case, label, share, votes in decided
        ]
        keys = [case.id.encode() for case in outcome.diagnoses]
        times = [case.at for case in outcome.diagnoses]
        out.emit_many(self._topics.diagnoses, keys, encode_all(records), times)

    def _votes(self, verdict: Verdict) -> list[dict[str, str] | None]:
        """Return what experts said that are not the learners, who are in the record anyway."""
        if self._experts == self._names:
            return [None] * len(verdict.labels)
        labels, experts = self._labels, self._experts
        return [
            {expert: labels[i] for expert, i in zip(experts, row, strict=True) if i >= 0}
            for row in verdict.votes.tolist()
        ]

    def send_feedback(self, settled: Sequence[Settle], out: Outbox) -> None:
        """Hand each local learner the labels of what it predicted."""
        for i, name in enumerate(self._names):
            heard = [case for case in settled if case.payloads[i] is not None]
            if heard:
                records = [self._feedback(case, i) for case in heard]
                keys = [case.id.encode() for case in heard]
                times = [case.at for case in heard]
                out.emit_many(self._topics.feedback(name), keys, encode_all(records), times)

    def _feedback(self, case: Settle, learner: int) -> Feedback:
        p = case.payloads[learner]
        truth, predicted = self._labels[case.label], self._labels[case.labels[learner]]
        return Feedback(case.id, truth, predicted, p[PHASE], p[CUBE], p[RULE], case.at, p[VOTES])
