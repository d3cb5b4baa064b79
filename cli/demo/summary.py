"""The results of a demonstration: figures, a recount, and a summary in plain words."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.monitor.scores import ENSEMBLE
from cli.demo.demonstration import DemoError, Progress
from cli.demo.label_publisher import LATE_SECONDS
from learners.arrays.shares import UNIT
from learners.arrays.types import MISSING
from learners.scores.error_rates import confusion, rates
from learners.scores.wording import percent
from learners.theory.regret import awake_regret
from schemas.records import Diagnosis
from settings.model import Settings

_SLICE = 100
WDBC = 569
"""The number of different patients."""


def figures(progress: Progress) -> dict[str, Any]:
    """Return the figures; rates are in percent."""
    scores = progress.scores
    ours = scores.rates[ENSEMBLE]
    best = scores.best
    return {
        "patients": len(progress.diagnoses),
        "PER": _percent(ours["per"]),
        "FPR": _percent(ours["fpr"]),
        "FNR": _percent(ours["fnr"]),
        "best_learner_PER": _percent(scores.rates[best]["per"]) if best else None,
        "learner_PER": {name: _percent(scores.rates[name]["per"]) for name in scores.learners},
        "weights": scores.weights,
        "exploration": {name: _percent(share) for name, share in scores.exploration.items()},
        "regret": scores.regret,
        "bound": _bound(progress),
        "amended_labels": int(progress.before is not None),
        "seconds": round(progress.seconds, 2),
        "referred_at_first": progress.untaught,
        "with_missing_values": progress.with_gaps,
        "worker_killed_and_back_after_seconds": progress.away,
    }


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share


def recount(settings: Settings, progress: Progress) -> None:
    """Recount everything from the diagnoses and the true labels; DemoError if it differs."""
    scores, labels = progress.scores, settings.labels
    ids = [diagnosis.id for diagnosis in progress.diagnoses]
    if len(set(ids)) != len(ids) or set(ids) != set(progress.truth):
        raise DemoError("not every patient has exactly one diagnosis")
    truth = np.array([labels.index(progress.truth[name]) for name in ids])
    for name, stated in scores.rates.items():
        votes = np.array([_said(diagnosis, name, labels) for diagnosis in progress.diagnoses])
        again = rates(confusion(truth, votes, len(labels)), labels.index(settings.positive))
        if (stated["per"], stated["fpr"], stated["fnr"]) != tuple(
            None if np.isnan(rate) else float(rate) for rate in (again.per, again.fpr, again.fnr)
        ):
            raise DemoError(f"the error rates of {name} do not match the diagnoses")
    if scores.regret != _regret(progress):
        raise DemoError("the regret does not match the diagnoses")


def _said(diagnosis: Diagnosis, name: str, labels: Sequence[str]) -> int:
    if name == ENSEMBLE:
        return labels.index(diagnosis.label)
    opinion = diagnosis.learners.get(name)
    label = None if opinion is None else opinion.label
    return MISSING if label is None else labels.index(label)


def _regret(progress: Progress) -> float:
    """Return the expected errors, had a learner been drawn by weight, minus the best learner's.

    A learner is compared on the patients on whom it had an opinion: one that is taught a moment
    before the others speaks alone.
    """
    names = list(progress.scores.learners)
    expected, losses = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    for diagnosis in progress.diagnoses:
        truth = progress.truth[diagnosis.id]
        opinions = {
            name: opinion.label != truth
            for name, opinion in diagnosis.learners.items()
            if opinion.label is not None
        }
        drawn = sum(round(diagnosis.weights[name] * UNIT) for name in opinions if opinions[name])
        for i, name in enumerate(names):
            if name in opinions:
                expected[i] += drawn
                losses[i] += opinions[name]
    return float(awake_regret(expected, losses))


def story(settings: Settings, progress: Progress) -> list[str]:
    """Summarise the run in plain words."""
    return [
        _course(settings, progress),
        *_beginning(progress),
        *_gaps(progress),
        *_crash(progress),
        *_amended(progress),
        _errors(settings, progress),
        _comparison(progress),
        _learning(progress),
        _weights(progress),
        "A recount of every figure from the diagnoses and labels found no difference.",
    ]


def _course(settings: Settings, progress: Progress) -> str:
    count, learners = len(progress.diagnoses), settings.learners
    features = sum(len(learner.features) for learner in learners.values())
    again = f" (there are {WDBC}, so some were repeated)" if count > WDBC else ""
    return (
        f"{count:,} patients{again} went to {len(learners)} learners that share their {features}"
        f" features. Each was diagnosed before its label, which came {LATE_SECONDS:g} s later on"
        " average and was learned from exactly once."
    )


def _beginning(progress: Progress) -> list[str]:
    count = progress.untaught
    sentence = (
        f"It began untaught and said so: the first {count:,} patients were referred to a person."
    )
    return [sentence] if count else []


def _gaps(progress: Progress) -> list[str]:
    count = progress.with_gaps
    if not count:
        return []
    came = "1 patient" if count == 1 else f"{count:,} patients"
    return [f"{came} came without one of their values and got a diagnosis all the same."]


def _crash(progress: Progress) -> list[str]:
    if progress.away is None:
        return []
    later = f"Another took over {progress.away:.0f} s later"
    outcome = "no patient was lost, and none was diagnosed or learned from twice"
    return [f"Midway the learners' worker was killed (kill -9). {later}: {outcome}."]


def _amended(progress: Progress) -> list[str]:
    clause = "was amended at the end: what it had counted was taken back and recounted exactly"
    rules = "Rules that learn keep what they had learned from it."
    return [f"One label was wrong at first and {clause}. {rules}"] if progress.before else []


def _bound(progress: Progress) -> float | None:
    """Return the bound on regret; after a correction, the one from before it."""
    return (progress.before or progress.scores).bound


def _errors(settings: Settings, progress: Progress) -> str:
    ours = progress.scores.rates[ENSEMBLE]
    ill = [
        diagnosis
        for diagnosis in progress.diagnoses
        if progress.truth[diagnosis.id] == settings.positive
    ]
    well = len(progress.diagnoses) - len(ill)
    missed = sum(diagnosis.label != settings.positive for diagnosis in ill)
    wrong = sum(progress.wrong[ENSEMBLE])
    return (
        f"The ensemble misdiagnosed {wrong:,} of {len(progress.diagnoses):,}"
        f" (error rate {percent(ours['per'])}): it missed {missed:,} of {len(ill):,}"
        f" {settings.positive} ones (miss rate {percent(ours['fnr'])}) and raised"
        f" {wrong - missed:,} false alarms among {well:,} others ({percent(ours['fpr'])})."
    )


def _comparison(progress: Progress) -> str:
    scores, ours = progress.scores, sum(progress.wrong[ENSEMBLE])
    best = scores.best
    if best is None:
        return "No learner made a prediction."
    best_errors = sum(progress.wrong[best])
    against = f"The best single learner, {best}, misdiagnosed {best_errors:,}"
    if ours < best_errors:
        return f"{against}: the ensemble made {percent(1 - ours / best_errors)} fewer errors."
    if ours == best_errors:
        return (
            f"{against}: the ensemble did as well without knowing in advance which learner that is."
        )
    return (
        f"{against}: following it would have been better this time, had it been known in advance."
    )


def _learning(progress: Progress) -> str:
    errors = progress.wrong[ENSEMBLE]
    if len(errors) < 2 * _SLICE:
        return "With so few patients there was little to learn from."
    first, last = sum(errors[:_SLICE]), sum(errors[-_SLICE:])
    return (
        f"It misdiagnosed {first} of its first {_SLICE} patients and {last} of its last {_SLICE}."
    )


def _weights(progress: Progress) -> str:
    scores = progress.scores
    now = ", ".join(f"{name} {weight:.2f}" for name, weight in scores.weights.items())
    limit, when = _bound(progress), " (before the correction)" if progress.before else ""
    bound = "" if limit is None else f"; the bound{when} is {limit:.1f}"
    regret = 0.0 if scores.regret is None else scores.regret
    return (
        f"The learners' weights started equal and are now {now}. Following one learner drawn by"
        f" these weights would have cost {regret:.1f} errors more than the best one{bound}."
    )
