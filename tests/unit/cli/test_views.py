"""What people see of diagnoses, status and demo: no value is lost, no markup is taken for real."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs
from rich.console import Console

from agents.monitor.overview import Overview, TaskView, TopicView
from agents.monitor.scores import Sums, score
from cli.demo.demonstration import Progress
from cli.demo.view import Lines, Picture
from cli.diagnoses import View, short
from cli.status_screen import report, screen
from learners.arrays.shares import UNIT
from learners.join import AMENDMENTS, COUNTERS
from schemas.records import Diagnosis, Opinion, TrackRecord
from tests.unit.agents.toy import SETTINGS

PLAIN = SETTINGS.model_copy(
    update={"ensemble": SETTINGS.ensemble.model_copy(update={"mode": "wm", "context": None})}
)
ROW = np.array([120, 27 * UNIT, 24, 15, 27 * UNIT, 27 * UNIT])
ON_TIME = {0: np.array([120, 120 * 119 // 2, 12 * UNIT, 0, 0, 120])}
SCORES = {0: np.array([90, 10, 2, 18]), 1: np.array([80, 20, 4, 16]), 2: np.array([95, 5, 9, 11])}


def drawn(shown, width=100):
    console = Console(record=True, width=width, force_terminal=False, file=None)
    with console.capture() as capture:
        console.print(shown)
    return capture.get()


def diagnosis(name="0123456789abcdef", complete=True, **learners):
    weights = dict.fromkeys(learners, 1 / len(learners))
    missing = tuple(learner for learner in PLAIN.learners if learner not in learners)
    return Diagnosis(name, "yes", complete, missing, "wm", weights, learners, 1_700_000_000_000)


def test_a_diagnosis_says_who_was_how_sure():
    decided = diagnosis(
        left=Opinion("yes", "r", False, 40, 0.914, 0.8, 0.97),
        right=Opinion("no", "r", True, 3, 0.5, 0.1, 0.9),
    )
    shown = drawn(View(PLAIN).table([decided]))
    for text in ("01234…9abcdef", "yes", "91.4 %", "no 50.0 %?", "none yet", " - "):
        assert text in shown
    assert "0123456789" not in shown
    assert "0123456789abcdef" in drawn(View(PLAIN, full_ids=True).table([decided]))
    assert "left: 91.4 %" in View(PLAIN).line(decided)


def test_the_track_record_is_what_is_promised_and_no_chance_is_certain():
    """A learner's own interval holds only for a fixed rule, so the list does not show it."""
    decided = structs.replace(
        diagnosis(left=Opinion("yes", "r", False, 40, 0.914, 0.8, 0.97)),
        chance={"yes": 0.9997, "no": 0.0003},
        track_record=TrackRecord(312, 303, 0.9432, 0.9851),
    )
    for shown in (drawn(View(PLAIN).table([decided])), View(PLAIN).line(decided)):
        assert "303 of 312 (94 to 99 %)" in shown
        assert ">99.9 %" in shown
        assert "100 %" not in shown
        assert "(80" not in shown


def test_generated_ids_are_shown_in_full_for_hb_diagnosis():
    ids = [f"8877d5d6-{n}" for n in (9_998, 9_999)]
    decided = [diagnosis(name, left=Opinion("yes", "r", False, 40, 0.9)) for name in ids]
    shown = drawn(View(PLAIN).table(decided), width=80)
    assert all(name in shown for name in ids)


def test_a_narrow_terminal_cuts_nothing_off(monkeypatch):
    learner = PLAIN.learners["left"]
    three = PLAIN.model_copy(update={"learners": {f"l{i}": learner for i in range(3)}})
    opinions = {f"l{i}": Opinion("yes", "r", False, 9, 0.9) for i in range(3)}
    decided = structs.replace(
        diagnosis(**opinions),
        chance={"yes": 0.99, "no": 0.01},
        track_record=TrackRecord(312, 303, 0.9432, 0.9851),
    )
    for width, opinion in ((80, "3 of 3"), (120, "90.0 %")):
        monkeypatch.setattr("cli.diagnoses.out", Console(width=width))
        shown = drawn(View(three).table([decided]), width)
        assert opinion in shown
        assert "303 of 312 (94 to 99 %)" in shown
        assert "…" not in shown.replace(short(decided.id), "")


def test_learners_that_were_not_heard_or_know_nothing():
    decided = diagnosis("[red]a[/red]", complete=False, left=Opinion("yes", "r", False, 0, 0.5))
    shown = drawn(View(PLAIN).table([decided]))
    for text in ("[red]a[/red]", "(incomplete)", "missing", "new"):
        assert text in shown
    assert View(PLAIN).table([]) == "no diagnoses yet"


def test_many_learners_share_a_column():
    learner = PLAIN.learners["left"]
    many = PLAIN.model_copy(update={"learners": {f"l{i}": learner for i in range(7)}})
    opinions = {f"l{i}": Opinion("yes" if i < 5 else "no", "r", False, 1) for i in range(7)}
    decided = diagnosis(**opinions)
    assert "5 of 7" in drawn(View(many).table([decided]))
    assert View(many).line(decided).endswith("5 of 7 agree")


def overview(partitions=1, holder="here 1"):
    scores = score(PLAIN, Sums(SCORES, {0: ROW}, delays=ON_TIME))
    counts = dict.fromkeys((*COUNTERS, *AMENDMENTS), 0)
    counts |= {"diagnosed_complete": 130, "diagnosed_incomplete": 5, "settled": 120, "expired": 4}
    counts |= {"label_parked": 3, "parked_label_settled": 1}
    counts |= {"label_duplicate": 2, "label_matched": 115}
    agents = ("local.left", "local.right", "ensemble")
    tasks = [
        TaskView(agent, number, None if number == 1 else holder, {"in": 10 * number})
        for agent in agents
        for number in range(partitions)
    ]
    topics = [
        TopicView("toy.labels", partitions, 120),
        TopicView("toy.deadletter.left", partitions, 2, dead=True),
    ]
    return Overview(topics, ["here 1"], tasks, counts, scores, 1000)


def test_one_screen_tells_it_all():
    shown = drawn(screen(PLAIN, overview()))
    for text in (
        "toy · fusion wm · 1 worker",
        "error rate last 1,000 miss rate false alarms weight exploring learned",
        "10.0 %",
        "135 diagnosed (5 incomplete): 120 labelled, 4 expired, 11 waiting",
        "2 labels came before their patient",
        "regret against the best learner: 12.0, at most 18.2 by theory",
        "Some records could not be used",
        "local.left/0",
        "labels",
    ):
        assert text in " ".join(shown.split())


def test_a_late_prediction_is_not_taken_for_a_reused_id():
    state = overview()
    late = replace(state, counts={**state.counts, "prediction_settled": 7})
    shown = " ".join(drawn(screen(PLAIN, late)).split())
    assert "7 predictions came when their patient's label had been learned" in shown
    assert "second ones" not in shown
    twice = replace(state, counts={**state.counts, "prediction_conflict": 3})
    shown = " ".join(drawn(screen(PLAIN, twice)).split())
    assert "3 predictions were second ones for their patient: are ids reused?" in shown


def test_many_tasks_share_rows():
    shown = " ".join(drawn(screen(PLAIN, overview(partitions=5))).split())
    assert "local.left (5) 1 workers, 1 by nobody 100 (most: 4 40)" in shown
    assert "nobody" in drawn(screen(PLAIN, overview(partitions=2)))


def test_the_report_holds_every_figure():
    figures = report(PLAIN, overview(partitions=2))
    assert figures["lag"] == 30
    assert (figures["waiting"], figures["parked"]) == (11, 2)
    assert figures["rates"]["ensemble"]["per"] == 0.1
    assert figures["regret_bound"] == pytest.approx(18.24, abs=0.01)


@pytest.fixture
def progress():
    state = Progress(total=50, step="patients are coming", page="http://127.0.0.1:6066")
    for i in range(40):
        state.truth[f"p{i}"] = "no"
        wrong = Opinion("yes", "r", i < 4, 1)
        right = Opinion("no", "r", False, 1)
        label = "yes" if i < 10 else "no"
        weights = {"left": 0.75, "right": 0.25}
        learners = {"left": right, "right": wrong}
        state.take(Diagnosis(f"p{i}", label, True, (), "wm", weights, learners, 5))
    state.published.patients = 41
    weights = np.array([3 * UNIT // 4, UNIT // 4])
    state.scores = score(PLAIN, Sums(SCORES, {0: ROW}, weights=weights, delays=ON_TIME))
    return state


def test_the_picture_of_a_demo(progress):
    before = drawn(Picture(Progress(step="starting"), "here:1")())
    assert "starting" in before
    assert "Kafka at here:1" in before
    shown = " ".join(drawn(Picture(progress, "here:1")()).split())
    for text in (
        "http://127.0.0.1:6066",
        "40 of 50 diagnosed, 120 labels learned",
        "error rate miss rate false alarms exploring weight",
        "ensemble 10.0 % 10.0 % 10.0 %",
        "██████████████████ 0.75",
        "errors over time ensemble ██████████▁▁",
        "regret 12.0 ████████████████░░░░░░░░ at most 18.2 by theory",
    ):
        assert text in shown


def test_the_lines_of_a_demo(progress, capsys):
    lines = Lines(progress)
    lines()
    lines()
    console, line = capsys.readouterr().err.splitlines(keepends=True)  # nothing new, nothing said
    assert console == "hb: console at http://127.0.0.1:6066\n"
    assert "error rate 10.0 %, miss rate 10.0 %, false alarms 10.0 %" in line
    assert "weights left 0.75 right 0.25 · regret 12.0 of 18.2" in line
    lines(last=True)
    assert capsys.readouterr().err == line
