"""The verdict on the ensemble: its state, colour and cause follow from what is known."""

from dataclasses import replace

import numpy as np
import pytest

from agents.monitor.overview import Overview, TaskView, figures
from agents.monitor.reliability import Colour, Concern, State, standing
from agents.monitor.scores import ENSEMBLE, Scorer, Scores, Sums
from settings.errors import HbError
from streams.engine.health import Cause, Symptom
from streams.kafka.connection import BrokerAwayError
from tests.unit.agents.toy import SETTINGS

CALM = [[570, 30], [20, 380]]
"""Truth by prediction, no and yes: 5 % wrong."""


def settings(**ensemble):
    plain = SETTINGS.ensemble.model_copy(update={"per_target": None, "fnr_target": None})
    return SETTINGS.model_copy(update={"ensemble": plain.model_copy(update=ensemble)})


def seen(counts=None, *, asked=SETTINGS, **changes) -> Overview:
    """Return a system with one worker that has seen these labels, all of them recent."""
    sums = Sums()
    if counts is not None:
        scopes = np.zeros((3, 2, 2), np.int64)
        scopes[0] = counts
        sums = Sums(confusion={0: scopes[0].ravel()}, recent=scopes)
    task = TaskView("ensemble", 0, "here", {})
    return replace(figures(asked, Scorer(asked), sums), members=["here"], tasks=[task], **changes)


def test_it_is_untaught_then_learning_then_healthy():
    states = [standing(SETTINGS, seen([[n, 0], [0, n]])) for n in (0, 3, 20, 400)]
    assert [state.state for state in states] == ["untaught", "untaught", "learning", "healthy"]
    assert [state.colour for state in states] == ["grey", "grey", "amber", "green"]
    assert states[0].sentence == (
        "Untaught: no label has been learned yet, so every patient is referred."
    )
    assert "6 of 10 labels" in states[1].sentence
    assert states[2].sentence == "Learning (40 labels: do not rely on it yet)."
    assert states[3].sentence == "Healthy: the error rate of the last 800 labels is 0.0 %."
    assert all(state.cause is None for state in states)


def test_history_teaches_until_the_present_is_known():
    plain = seen([[2, 0], [0, 1]])

    def taught(labels, since=3):
        past = {ENSEMBLE: {"per": 0.05, "fnr": 0.05, "fpr": 0.05}}
        scores = replace(plain.scores, taught=labels, history=past, labelled=since)
        return replace(plain, scores=scores)

    assert standing(SETTINGS, taught(4)).state == "untaught"
    assert standing(SETTINGS, taught(17)).sentence == (
        "Learning (20 labels: do not rely on it yet)."
    )
    assert standing(SETTINGS, taught(2000)).sentence == (
        "Healthy: the error rate of 2,000 labels of history was 5.0 %; 3 labels have come since."
    )
    for since, words in ((0, "no label has come"), (1, "1 label has come")):
        assert words in standing(SETTINGS, taught(2000, since)).sentence


def test_answers_from_the_first_patient_on_are_called_guesses():
    assert "answers are guesses" in standing(settings(min_labels=0), seen()).sentence


@pytest.mark.parametrize(
    ("trouble", "cause", "colour"),
    [
        (Symptom(Cause.TASK_REOPENING, "task a/0 reopens: a bug"), "task_reopening", Colour.RED),
        (Symptom(Cause.BROKER_SLOW, "the broker is slow to answer"), "broker_slow", Colour.AMBER),
    ],
)
def test_what_breaks_the_system_comes_first(trouble, cause, colour):
    verdict = standing(SETTINGS, seen(CALM, refused=("left",)), own=[trouble])
    assert (verdict.state, verdict.cause, verdict.colour) == ("degraded", cause, colour)
    assert verdict.sentence == f"Degraded because {trouble.text}."
    assert [concern.cause for concern in verdict.concerns] == [cause, "dead_letters"]


def test_the_broker_that_is_away_is_named_even_if_nothing_was_ever_seen():
    away = BrokerAwayError("here:9092", "cannot connect")
    for overview in (None, seen(CALM)):
        verdict = standing(SETTINGS, overview, away)
        assert (verdict.state, verdict.cause, verdict.colour) == ("degraded", "broker_away", "red")
    assert standing(SETTINGS, None, HbError("x")).cause == "state_unreadable"


def test_what_passes_is_starting():
    opening = Symptom(Cause.TASK_OPENING, "task ensemble/0 is opening")
    verdict = standing(SETTINGS, seen(CALM), own=[opening])
    assert (verdict.state, verdict.colour) == ("starting", "grey")
    assert verdict.sentence == "Starting: task ensemble/0 is opening."
    assert standing(SETTINGS, None).state == "starting"


def test_records_that_cannot_be_used_matter_even_to_who_is_untaught():
    verdict = standing(SETTINGS, seen(refused=("left", "the ensemble")))
    assert (verdict.cause, verdict.colour) == ("dead_letters", "amber")
    assert "sent to left and the ensemble could not be used" in verdict.sentence


def test_a_full_join_is_a_matter_of_concern():
    full = replace(seen(CALM), pending=81, limit=100)
    assert standing(SETTINGS, full).cause == "join_filling"
    assert standing(SETTINGS, replace(full, pending=79)).cause is None


@pytest.mark.parametrize(
    ("target", "colour", "chance"),
    [({"per_target": 0.01}, "red", False), ({"per_target": 0.045}, "amber", True)],
)
def test_a_broken_target_is_red_unless_chance_may_have_broken_it(target, colour, chance):
    asked = settings(**target)
    verdict = standing(asked, seen(CALM, asked=asked))
    assert (verdict.cause, verdict.colour) == ("per_target", colour)
    assert ("perhaps by chance" in verdict.sentence) == chance
    assert "the error rate of the last 1,000 labels is 5.0 %, above the target" in verdict.sentence


def test_a_target_that_is_met_raises_no_concern():
    asked = settings(per_target=0.05, fnr_target=0.05)
    assert standing(asked, seen(CALM, asked=asked)).state is State.HEALTHY


def test_missed_patients_are_held_against_their_target():
    asked = settings(fnr_target=0.01)
    verdict = standing(asked, seen(CALM, asked=asked))
    assert (verdict.cause, verdict.colour) == ("fnr_target", "red")
    assert "miss rate of the last 1,000 labels is 5.0 %" in verdict.sentence


def test_labels_that_are_excluded_wrongly_too_often():
    asked = settings(miss_target={"yes": 0.05})
    scores = Scores(
        labels=["no", "yes"],
        labelled=1000,
        confusion={ENSEMBLE: np.array(CALM)},
        window=np.array(CALM),
        accuracy=seen(CALM).scores.accuracy,
        missed={"yes": 0.2},
        miss_targets={"yes": 0.05},
    )
    verdict = standing(asked, replace(seen(CALM), scores=scores))
    assert (verdict.cause, verdict.colour) == ("miss_target", "red")
    assert "yes is wrongly excluded for 20.0 % of its patients" in verdict.sentence


def test_answers_that_tell_nothing_are_red_however_low_their_error_rate():
    verdict = standing(SETTINGS, seen([[960, 0], [40, 0]]))
    assert (verdict.cause, verdict.colour) == ("guessing", "red")
    assert "miss rate of the last 1,000 labels is 100.0 %" in verdict.sentence


def test_the_most_frequent_label_must_be_beaten_unless_misses_are_what_counts():
    poor = [[750, 150], [40, 60]]
    verdict = standing(SETTINGS, seen(poor))
    assert (verdict.cause, verdict.colour) == ("below_baseline", "amber")
    assert "19.0 %, and always answering no would give 10.0 %" in verdict.sentence
    careful = settings(miss_target={"yes": 0.4})
    assert standing(careful, seen(poor, asked=careful)).cause is None


def test_answers_that_are_probably_of_no_use_are_not_called_healthy():
    """As after patients who waited while no worker ran, with an ensemble that knew nothing."""
    flood = [[161, 297], [0, 241]]
    verdict = standing(SETTINGS, seen(flood))
    assert (verdict.cause, verdict.colour) == ("below_baseline", "amber")
    assert (
        "42.5 %, and always answering no would give 34.5 %, perhaps by chance" in verdict.sentence
    )
    assert standing(SETTINGS, seen([[10, 18], [0, 12]])).state == "learning"
    assert standing(SETTINGS, seen([[300, 120], [110, 169]])).state == "healthy"


def test_a_risen_error_rate_asks_whether_labels_are_wrong():
    before = seen(CALM)
    verdict = standing(SETTINGS, replace(before, scores=replace(before.scores, risen=0.2)))
    assert (verdict.cause, verdict.colour) == ("error_risen", "amber")
    assert "risen by 20.0 % within the last 1,000 labels: are labels wrong" in verdict.sentence


def test_what_the_caller_knows_is_among_the_concerns():
    silent = Concern(Colour.AMBER, "silent", "left makes no progress")
    verdict = standing(SETTINGS, seen(CALM), also=[silent])
    assert verdict.sentence == "Degraded because left makes no progress."
    assert verdict.report()["concerns"] == [
        {"colour": "amber", "cause": "silent", "text": "left makes no progress"}
    ]
