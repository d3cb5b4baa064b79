"""Labels that are amended or withdrawn: what was counted is taken back and recounted."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.clients.recorded_patients import _Gathered
from agents.testing import Pipeline
from agents.totals import LABELLED, LOST, AmendmentTotals
from learners.theory.promises import share_interval
from tests.inline_pipeline import configured

ROWS = np.random.default_rng(3).random((40, 3)).round(3)
MODES = ["wm", "ah", "best", "pwm", "blum", "odds", "stack", "committee", "mixture"]
PATIENTS = 6
LABELS = ("well", "ill", None)


def met(config, patients=PATIENTS):
    """A pipeline that has learned a bit, and then diagnosed patients whose labels are to come."""
    pipeline = Pipeline(config)
    for k in range(20):
        pipeline.patient(f"early{k}", row(k))
        pipeline.label(f"early{k}", "ill" if ROWS[k].sum() > 1.5 else "well")
    for k in range(patients):
        pipeline.patient(f"p{k}", row(20 + k))
    return pipeline


def row(k):
    return dict(zip("xyz", ROWS[k].tolist(), strict=True))


def counted(pipeline):
    """All integers that are learned, by agent and table; rows of zeros count as absent."""
    counts = {}
    for agent in pipeline.agents.values():
        agent.processor.save()
        for name, table in agent.tables.items():
            if name in {"counts", "scores", "regret", "assessment"} or name.startswith("fusion_"):
                cells, rows = table.items()
                if rows.dtype.kind == "i":
                    if name.endswith("delays"):
                        rows = rows[:, :-1]  # the highest pace so far, which never falls
                    pairs = zip(cells.tolist(), rows.tolist(), strict=True)
                    counts[agent.spec.name, name] = {c: r for c, r in pairs if any(r)}
        if "totals" in agent.tables and agent.spec.name != "ensemble":
            totals = agent.tables["totals"].rows(np.zeros(1, np.int64))[0]
            counts[agent.spec.name, "totals"] = totals[[LABELLED, LOST]].tolist()
    return counts


def windowed(pipeline):
    """The labels and predictions of the window, without those that were withdrawn."""
    _, truth, predicted = pipeline.agents["ensemble"].processor.learner.window.rows()
    rows = np.column_stack([truth, predicted])[truth >= 0]
    return sorted(rows.tolist())


def amendments(pipeline):
    processor = pipeline.agents["ensemble"].processor
    processor.save()
    return AmendmentTotals(
        pipeline.agents["ensemble"].tables["amendments"].rows(np.zeros(1, np.int64))[0]
    ).counts


def last_word(words):
    """What counts of what was said about a patient: (label, amends), in order."""
    current = None
    for label, amends in words:
        if label is None or amends or current is None:
            current = label
    return current


SAID = st.lists(
    st.tuples(st.integers(0, PATIENTS - 1), st.sampled_from(LABELS), st.booleans()), max_size=14
)


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=6, deadline=None)
@given(events=SAID, restart=st.integers(0, 14))
def test_counts_end_as_if_only_the_last_label_had_come(tmp_path_factory, mode, events, restart):
    config = configured(tmp_path_factory.getbasetemp(), f"ensemble.mode={mode}")
    corrected, plain = met(config), met(config)
    for k, (patient, label, amends) in enumerate(events):
        if k == restart:
            corrected.restart()
        corrected.label(f"p{patient}", label, amends=amends)
    for patient in range(PATIENTS):
        label = last_word([(event[1], event[2]) for event in events if event[0] == patient])
        if label is not None:
            plain.label(f"p{patient}", label)
    assert counted(corrected) == counted(plain)
    assert windowed(corrected) == windowed(plain)
    letters = {letter.reason for letter in corrected.dead_letters}
    assert letters <= {"conflict"}


def test_a_second_label_without_amends_stays_a_conflict(tmp_path):
    pipeline = met(configured(tmp_path))
    pipeline.label("p0", "ill")
    before = counted(pipeline)
    pipeline.label("p0", "well")
    assert [letter.reason for letter in pipeline.dead_letters] == ["conflict"]
    assert counted(pipeline) == before


def test_rules_that_learn_keep_their_lesson_and_it_is_counted(tmp_path):
    pipeline = met(configured(tmp_path))
    pipeline.label("p0", "ill")
    lesson = pipeline.rule("b", "lr").state()
    pipeline.label("p0", "well", amends=True)
    assert amendments(pipeline)["unlearned"] == 1
    np.testing.assert_equal(pipeline.rule("b", "lr").state(), lesson)
    pipeline.label("p0", None)
    assert amendments(pipeline)["unlearned"] == 1
    pipeline.label("p0", "ill")
    assert amendments(pipeline)["unlearned"] == 0, "it has learned just that"
    np.testing.assert_equal(pipeline.rule("b", "lr").state(), lesson)


def test_a_correction_before_the_patient_counts_as_the_label(tmp_path):
    amended, plain = met(configured(tmp_path)), met(configured(tmp_path))
    amended.label("new", "ill")
    amended.label("new", "well", amends=True)
    plain.label("new", "well")
    for pipeline in (amended, plain):
        pipeline.patient("new", row(39))
    assert counted(amended) == counted(plain)
    assert amendments(amended)["unlearned"] == 0


def test_a_label_withdrawn_before_the_patient_leaves_no_trace(tmp_path):
    withdrawn, plain = met(configured(tmp_path)), met(configured(tmp_path))
    withdrawn.label("new", "ill")
    withdrawn.label("new", None)
    for pipeline in (withdrawn, plain):
        pipeline.patient("new", row(39))
    assert counted(withdrawn) == counted(plain)
    withdrawn.wait("2h")
    assert not withdrawn.dead_letters


@pytest.mark.parametrize("label", ["well", None])
def test_after_its_time_a_correction_is_a_dead_letter_of_its_own(tmp_path, label):
    pipeline = met(configured(tmp_path, "ensemble.amend_ttl=1h"))
    pipeline.label("p0", "ill")
    pipeline.wait("59m")
    pipeline.label("p1", "ill")
    pipeline.wait("1m")
    before = counted(pipeline)
    pipeline.label("p0", label, amends=True)
    assert [letter.reason for letter in pipeline.dead_letters] == ["final"]
    assert counted(pipeline) == before
    pipeline.label("p0", "ill", amends=True)
    pipeline.label("p1", label, amends=True)
    assert len(pipeline.dead_letters) == 1, "the same label again is none, nor is one in time"


def test_a_withdrawn_patient_takes_another_label_until_its_time_is_over(tmp_path):
    pipeline = met(configured(tmp_path, "ensemble.amend_ttl=1h"))
    pipeline.label("p0", "ill")
    pipeline.label("p0", None)
    pipeline.wait("2h")
    pipeline.label("p0", "ill")
    assert [letter.reason for letter in pipeline.dead_letters] == ["final"]


@pytest.mark.parametrize("setting", ["ensemble.max_amendable=2", "ensemble.max_amendable=0"])
def test_what_is_kept_for_corrections_is_bounded(tmp_path, setting):
    pipeline = met(configured(tmp_path, setting))
    for k in range(PATIENTS):
        pipeline.label(f"p{k}", "ill")
    for k in range(PATIENTS):
        pipeline.label(f"p{k}", "well", amends=True)
    final = PATIENTS - (2 if "2" in setting else 0)
    assert [letter.reason for letter in pipeline.dead_letters] == ["final"] * final


def test_a_rebuild_is_taught_the_last_words(tmp_path):
    """`hb teach --from` takes each patient with the label that counts in the end."""
    pipeline = met(configured(tmp_path))
    events = [("p0", "ill", False), ("p0", "well", True), ("p1", "ill", False), ("p1", None, False),
            ("p2", "ill", False), ("p2", None, True), ("p2", "well", False), ("p3", "well", True),
            ("p3", "ill", False), ("p4", "ill", False), ("p4", "well", False)]  # fmt: skip
    for name, label, amends in events:
        pipeline.label(name, label, amends=amends)
    gathered = _Gathered(pipeline.settings)
    for topic in gathered.topics:
        for batch in pipeline.published[topic]:
            gathered.take(topic, [SimpleNamespace(value=batch.values[0], timestamp=batch.base)])
    (patients,) = gathered.patients(pipeline.settings, "other").chunks()
    taught = dict(zip(patients.ids, patients.labels, strict=True))
    expected = {"p0": "well", "p1": "", "p2": "well", "p3": "well", "p4": "ill", "p5": ""}
    assert {name: taught[name] for name in expected} == expected


def test_a_correction_widens_the_track_record_and_the_intervals_of_accuracies(tmp_path):
    config = configured(tmp_path, "ensemble.min_labels=0")
    pipeline = met(config)
    before = pipeline.patient("q0", row(30)).track_record
    pipeline.label("early0", "ill" if ROWS[0].sum() <= 1.5 else "well", amends=True)
    pipeline.label("early0", "ill" if ROWS[0].sum() > 1.5 else "well", amends=True)
    after = pipeline.patient("q1", row(30)).track_record
    assert (after.cases, after.right) == (before.cases, before.right)
    low, high = share_interval(np.array([after.cases]), np.array([after.right]), corrections=2)
    assert (after.low, after.high) == (
        pytest.approx(low[0], abs=1e-3),
        pytest.approx(high[0], abs=1e-3),
    )
    assert after.low < before.low - 1e-3
