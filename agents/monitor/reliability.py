"""Can the answers be relied on? One sentence, with its colour and its cause.

    untaught   too few labels are learned: patients are referred
    learning   answers are given, but the error rate is not yet known to within ten points
    starting   tasks are opening; this passes
    degraded   something is wrong, and the sentence says what
    healthy    none of these

What is wrong, the gravest first:

    red     the system does not work (`agents.monitor.system_health`): no broker, no worker, a task
            that fails or reopens. Or it works and its answers are bad: a target is broken by more
            than chance explains, or the answers tell ill from well no better than guessing
    amber   records could not be used in the last ten minutes; an agent makes no progress; the join
            has little room left; a target is missed by no more than chance explains; always giving
            the most frequent label would do better by more than two standard errors; the error
            rate has risen

The console shows this and decides nothing itself; `hb status` shows the same.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from agents.monitor.overview import Overview
from agents.monitor.recent import Rate, Recent, recent
from agents.monitor.scores import ENSEMBLE, Scores
from agents.monitor.system_health import system_verdict
from learners.scores.wording import percent
from learners.theory.promises import share_interval, window_interval
from settings.errors import HbError
from settings.model import Settings
from streams.engine.health import Cause, Level, Symptom, Verdict

KNOWN_WITHIN = 0.1
"""How well the error rate must be known before the ensemble has learned enough to be judged."""
_STANDARD_ERRORS = 2.0
_FULL = 0.8


class State(StrEnum):
    """How far the answers can be relied on."""

    UNTAUGHT = "untaught"
    LEARNING = "learning"
    STARTING = "starting"
    DEGRADED = "degraded"
    HEALTHY = "healthy"


class Colour(StrEnum):
    """The colour of a state."""

    GREY = "grey"
    GREEN = "green"
    AMBER = "amber"
    RED = "red"


@dataclass(frozen=True)
class Concern:
    """One thing that is wrong; `text` is a clause that follows "because"."""

    colour: Colour
    cause: str
    text: str


@dataclass(frozen=True)
class Standing:
    """The answer: a state, its colour, a whole sentence, and all that is wrong, gravest first."""

    state: State
    colour: Colour
    sentence: str
    concerns: tuple[Concern, ...] = ()

    @property
    def cause(self) -> str | None:
        """Return the gravest cause, None if nothing is wrong."""
        return self.concerns[0].cause if self.concerns else None

    def report(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "state": str(self.state),
            "colour": str(self.colour),
            "sentence": self.sentence,
            "cause": self.cause,
            "concerns": [
                {"colour": str(concern.colour), "cause": concern.cause, "text": concern.text}
                for concern in self.concerns
            ],
        }


def standing(
    settings: Settings,
    overview: Overview | None,
    error: HbError | None = None,
    own: Iterable[Symptom] = (),
    also: Iterable[Concern] = (),
) -> Standing:
    """Say how far the ensemble can be relied on.

    error   what kept the caller from looking at the system now; `overview` may be an older one
    own     symptoms of the worker that asks
    also    what the caller knows from watching for a while, as one look does not show it
    """
    system = system_verdict(overview, error, own)
    scores = Scores() if overview is None else overview.scores
    concerns = [*_broken(system), *also, *_operation(overview)]
    if _known(scores):
        concerns += _quality(settings, scores)
    concerns.sort(
        key=lambda concern: concern.colour is not Colour.RED
    )  # stable: the order above stays
    if concerns:
        worst = concerns[0]
        sentence = f"Degraded because {worst.text}."
        return Standing(State.DEGRADED, worst.colour, sentence, tuple(concerns))
    if system.level is Level.STARTING or overview is None:
        sentence = f"Starting: {system.text or 'the system is being read'}."
        return Standing(State.STARTING, Colour.GREY, sentence)
    return _taught(settings, scores)


def _taught(settings: Settings, scores: Scores) -> Standing:
    """Return the state of an ensemble that nothing is wrong with."""
    labels, least = scores.labelled + scores.taught, settings.ensemble.min_labels
    if labels == 0:
        consequence = "every patient is referred" if least else "answers are guesses"
        sentence = f"Untaught: no label has been learned yet, so {consequence}."
        return Standing(State.UNTAUGHT, Colour.GREY, sentence)
    if labels < least:
        sentence = (
            f"Untaught: {labels} of {least} labels learned; until then, patients are referred."
        )
        return Standing(State.UNTAUGHT, Colour.GREY, sentence)
    if _known(scores):
        latest = recent(settings, scores)
        wrong = percent(latest.error.value)
        sentence = f"Healthy: the error rate of the last {latest.labels:,} labels is {wrong}."
        return Standing(State.HEALTHY, Colour.GREEN, sentence)
    if _known_from_history(scores):
        wrong = percent(scores.history[ENSEMBLE]["per"])
        past = f"the error rate of {scores.taught:,} labels of history was {wrong}"
        since = {0: "no label has", 1: "1 label has"}.get(scores.labelled)
        sentence = f"Healthy: {past}; {since or f'{scores.labelled:,} labels have'} come since."
        return Standing(State.HEALTHY, Colour.GREEN, sentence)
    counted = "1 label" if labels == 1 else f"{labels:,} labels"
    sentence = f"Learning ({counted}: do not rely on it yet)."
    return Standing(State.LEARNING, Colour.AMBER, sentence)


def _known(scores: Scores) -> bool:
    """Tell whether the error rate is known well enough to judge it."""
    accuracy = scores.accuracy.get(ENSEMBLE)
    if accuracy is None:
        return False
    return max(accuracy.value - accuracy.low, accuracy.high - accuracy.value) <= KNOWN_WITHIN


def _known_from_history(scores: Scores) -> bool:
    """Tell whether it was known as well when history had been taught."""
    share = scores.history.get(ENSEMBLE, {}).get("per")
    if share is None:
        return False
    right = round((1.0 - share) * scores.taught)
    low, high = share_interval(np.array([scores.taught]), np.array([right]))
    return max(1.0 - share - float(low[0]), float(high[0]) - 1.0 + share) <= KNOWN_WITHIN


def _broken(system: Verdict) -> list[Concern]:
    """Return what keeps the system from working."""
    return [
        Concern(
            Colour.AMBER if symptom.cause is Cause.BROKER_SLOW else Colour.RED,
            str(symptom.cause),
            symptom.text,
        )
        for symptom in system.symptoms
        if symptom.cause.level is Level.TROUBLE
    ]


def _operation(overview: Overview | None) -> Iterator[Concern]:
    """Yield what troubles a system that works."""
    if overview is None:
        return
    if overview.refused:
        names = " and ".join(overview.refused)
        text = f"records sent to {names} could not be used in the last ten minutes"
        yield Concern(Colour.AMBER, "dead_letters", f"{text} (hb deadletters)")
    if overview.limit and overview.pending >= _FULL * overview.limit:
        text = f"{overview.pending:,} patients wait for predictions or labels, of at most"
        yield Concern(Colour.AMBER, "join_filling", f"{text} {overview.limit:,}")


def _quality(settings: Settings, scores: Scores) -> Iterator[Concern]:
    """Yield what is wrong with the answers themselves."""
    latest = recent(settings, scores)
    yield from _targets(scores, latest)
    yield from _excluded(scores)
    if _guesses(latest):
        text = f"the miss rate of the last {latest.labels:,} labels is {percent(latest.miss.value)}"
        yield Concern(Colour.RED, "guessing", f"{text}, no better than guessing")
    if settings.ensemble.miss_target is None and _beaten(scores, latest):
        text = (
            f"the error rate of the last {latest.labels:,} labels is {percent(latest.error.value)}"
        )
        usual = latest.baseline.error if latest.baseline else None
        text += f", and always answering {latest.usual} would give {percent(usual)}"
        text += "" if _surely_beaten(latest) else ", perhaps by chance"
        yield Concern(Colour.AMBER, "below_baseline", text)
    if scores.risen:
        text = f"the error rate has risen by {percent(scores.risen)} within the last 1,000 labels"
        yield Concern(
            Colour.AMBER, "error_risen", f"{text}: are labels wrong, or are patients different?"
        )


def _targets(scores: Scores, latest: Recent) -> Iterator[Concern]:
    for key, name, rate in (("per", "error rate", latest.error), ("fnr", "miss rate", latest.miss)):
        target = scores.targets.get(key)
        if target is None or rate.value is None or rate.value <= target:
            continue
        text = f"the {name} of the last {latest.labels:,} labels is {percent(rate.value)}"
        yield _over(f"{key}_target", text, rate, target)


def _excluded(scores: Scores) -> Iterator[Concern]:
    """Yield the labels that are excluded wrongly more often than the settings allow."""
    for label, target in scores.miss_targets.items():
        cases = int(scores.confusion[ENSEMBLE][scores.labels.index(label)].sum())
        share = scores.missed.get(label)
        if share is None or share <= target:
            continue
        right = round((1.0 - share) * cases)
        low, high = share_interval(
            np.array([cases]), np.array([right]), corrections=scores.corrections
        )
        rate = Rate(cases, share, 1.0 - float(high[0]), 1.0 - float(low[0]))
        text = f"{label} is wrongly excluded for {percent(share)} of its patients"
        yield _over("miss_target", text, rate, target)


def _over(cause: str, text: str, rate: Rate, target: float) -> Concern:
    beyond = rate.low > target
    clause = f"{text}, above the target of {percent(target)}"
    return Concern(
        Colour.RED if beyond else Colour.AMBER,
        cause,
        clause if beyond else f"{clause}, perhaps by chance",
    )


def _guesses(latest: Recent) -> bool:
    """Tell whether patients with the positive label are missed as often as by blind guessing.

    Giving the positive label to a random share q of the patients misses 1 - q of those who have it
    and makes q false alarms: together one.
    """
    miss, alarm = latest.miss.value, latest.alarm.value
    return miss is not None and alarm is not None and miss + alarm >= 1.0


def _beaten(scores: Scores, latest: Recent) -> bool:
    """Tell whether the most frequent label does better.

    Chance is excluded by an interval that holds however often one looks, which takes many hundred
    labels. Two standard errors are enough not to be called healthy.
    """
    if latest.baseline is None:
        return False
    won, lost = latest.baseline.won, latest.baseline.lost
    doubtful = lost - won > _STANDARD_ERRORS * float(np.sqrt(won + lost))
    return _surely_beaten(latest) or (doubtful and _known(scores))


def _surely_beaten(latest: Recent) -> bool:
    """Tell whether it does better by more than chance explains, however often one looks."""
    if latest.baseline is None:
        return False
    won, lost = latest.baseline.won, latest.baseline.lost
    low, _ = window_interval(np.array([won + lost]), np.array([lost]))
    return bool(low[0] > 0.5)
