"""What a demo tells: figures, recount and story from made-up diagnoses."""

import msgspec
import numpy as np
import pytest

from agents.monitor.scores import Sums, score
from cli.demo.demonstration import DemoError, Progress
from cli.demo.summary import figures, recount, story
from cli.demo.wdbc import wdbc, with_gaps
from learners.arrays.shares import UNIT
from schemas.records import Diagnosis, Opinion
from tests.unit.agents.toy import SETTINGS

PLAIN = SETTINGS.model_copy(
    update={"ensemble": SETTINGS.ensemble.model_copy(update={"mode": "wm", "context": None})}
)


def diagnosis(number, label, left, right, weight=0.5):
    opinions = {"left": left, "right": right}
    return Diagnosis(
        f"p{number}",
        label,
        True,
        (),
        "wm",
        {"left": weight, "right": 1 - weight},
        {
            name: Opinion(predicted, "rule", number % 2 == 0, 1)
            for name, predicted in opinions.items()
        },
        5,
    )


def progressed(rows):
    """Return the progress of (truth, ensemble, left, right) rows, its scores counted by hand."""
    progress = Progress(total=len(rows))
    scores = {scope: np.zeros((2, 2), np.int64) for scope in range(3)}
    regret = np.zeros(6, np.int64)
    for number, (truth, *labels) in enumerate(rows):
        progress.truth[f"p{number}"] = truth
        decided = diagnosis(number, *labels)
        progress.take(decided)
        index = ["no", "yes"].index
        for scope, label in enumerate(labels):
            if label is not None:
                scores[scope][index(truth), index(label)] += 1
        heard = [label is not None for label in labels[1:]]
        wrong = [label not in (None, truth) for label in labels[1:]]
        loss = sum(wrong) * UNIT // 2
        regret += [1, loss, *wrong, *(loss * spoke for spoke in heard)]
    progress.published.patients = len(rows)
    flat = {scope: counts.reshape(-1) for scope, counts in scores.items()}
    parts = np.array([UNIT // 2, UNIT // 2])
    progress.scores = score(PLAIN, Sums(flat, {0: regret}, weights=parts))
    return progress


GOOD = ("yes", "yes", "yes", "no")
MISSED = ("yes", "no", "no", "yes")
ALARM = ("no", "yes", "yes", "yes")
FINE = ("no", "no", "no", "no")


def test_figures_are_in_percent():
    percentages = figures(progressed([GOOD, MISSED, ALARM, FINE]))
    assert percentages["patients"] == 4
    assert (percentages["PER"], percentages["FPR"], percentages["FNR"]) == (50.0, 50.0, 50.0)
    assert percentages["weights"] == {"left": 0.5, "right": 0.5}
    assert percentages["learner_PER"] == {"left": 50.0, "right": 50.0}
    assert percentages["regret"] == 0.0


def test_the_story_tells_of_the_beginning_of_gaps_and_of_the_crash():
    progress = progressed([GOOD, MISSED, ALARM, FINE])
    progress.diagnoses[:] = [
        msgspec.structs.replace(decided, answer="refer" if number < 2 else "no")
        for number, decided in enumerate(progress.diagnoses)
    ]
    progress.gaps, progress.away = frozenset(["p1"]), 4.4
    sentences = story(PLAIN, progress)
    assert (
        "It began untaught and said so: the first 2 patients were referred to a person."
        in sentences
    )
    assert (
        "1 patient came without one of their values and got a diagnosis all the same." in sentences
    )
    assert any("Another took over 4 s later: no patient was lost" in line for line in sentences)
    assert figures(progress)["referred_at_first"] == 2
    assert figures(progress)["with_missing_values"] == 1


def test_each_event_is_reported_once():
    progress = Progress(total=3, gaps=frozenset(["p2"]))
    for number, answer in enumerate(("refer", "refer", "no", "refer")):
        progress.truth[f"p{number}"] = "no"
        decided = diagnosis(number, "no", "no", "no")
        progress.take(msgspec.structs.replace(decided, answer=answer))
    assert progress.messages == [
        "it is untaught: no label is known yet, so patients are referred",
        "after 2 patients it has learned enough to answer",
        "a patient came without one of its values, and is diagnosed all the same",
    ]


def test_one_patient_in_twenty_five_has_a_gap():
    source, gaps = with_gaps(wdbc())
    columns = list(source.patients.columns.values())
    missing = [
        name
        for row, name in enumerate(source.patients.ids)
        if sum(column[row] is None for column in columns) == 1
    ]
    assert sorted(missing) == sorted(gaps)
    assert len(gaps) == 23


def test_a_recount_agrees_with_true_scores():
    recount(PLAIN, progressed([GOOD, MISSED, ALARM, FINE, FINE]))


def test_a_learner_that_was_taught_first_is_compared_where_it_spoke():
    alone = ("yes", "no", "no", None)
    recount(PLAIN, progressed([alone, GOOD, MISSED, ALARM, ALARM, FINE]))


def test_a_recount_finds_what_is_wrong():
    rows = [GOOD, MISSED, ALARM, FINE]
    differing = progressed([GOOD, GOOD, ALARM, FINE])
    altered = progressed(rows)
    altered.scores = differing.scores
    with pytest.raises(DemoError, match="error rates of ensemble"):
        recount(PLAIN, altered)
    lost = progressed(rows)
    lost.diagnoses.pop()
    with pytest.raises(DemoError, match="exactly one diagnosis"):
        recount(PLAIN, lost)
    twice = progressed(rows)
    twice.diagnoses.append(twice.diagnoses[0])
    with pytest.raises(DemoError, match="exactly one diagnosis"):
        recount(PLAIN, twice)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([GOOD] * 4 + [MISSED], "misdiagnosed 1: the ensemble did as well"),
        ([("no", "no", "yes", "yes"), FINE], "the ensemble made 100.0 % fewer errors"),
        ([("no", "yes", "no", "yes"), FINE], "following it would have been better this time"),
    ],
)
def test_the_comparison_is_reported_as_it_is(rows, sentence):
    assert sentence in " ".join(story(PLAIN, progressed(rows)))


def test_the_story_counts_right():
    text = " ".join(story(PLAIN, progressed([GOOD, MISSED, ALARM, FINE])))
    assert "4 patients went to 2 learners" in text
    assert "misdiagnosed 2 of 4 (error rate 50.0 %): it missed 1 of 2 yes ones" in text
    assert "1 false alarms among 2 others" in text
    assert "little to learn from" in text


def test_exploration_is_counted_from_opinions():
    assert progressed([FINE, FINE, FINE, FINE]).exploration("left") == 0.5
    assert Progress().exploration("left") == 0.0
