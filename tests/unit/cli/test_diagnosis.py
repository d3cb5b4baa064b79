"""`hb diagnosis`: one patient in sentences."""

import msgspec

from agents.clients.one_patient import Patient, last_word
from cli import diagnosis
from schemas.examples import EXAMPLES
from schemas.records import Diagnosis, Label, Reasons, TrackRecord

MADE = EXAMPLES[Diagnosis]
ALONE = msgspec.structs.replace(MADE, subject=None)
AT = MADE.at + 86_400_000
WHEN = diagnosis._time(AT)


def test_a_referral_says_what_it_may_be_and_why():
    lines = list(diagnosis.described(Patient(MADE)))
    assert lines[0] == "refer; cannot be excluded: benign, malignant (best guess: malignant)"
    assert lines[1] == "chance: benign 32.1 %, malignant 67.9 %"
    assert (
        lines[2] == "track record: of 312 diagnosed like this before, 209 were right (59 to 75 %)"
    )
    assert lines[3] == (
        "note: More than one label cannot be excluded. A learner did not answer in time."
        " A learner's rule had not been tried on patients like this one."
    )
    assert lines[-4] == "  missing: history"
    assert lines[-3] == f"made: {diagnosis._time(MADE.at)}, after 4,120 labels"
    assert lines[-2:] == ["label: not known yet", "person s5"]


def test_an_answer_says_so_and_a_label_follows():
    answered = msgspec.structs.replace(
        ALONE, answer="malignant", cannot_exclude=(), why=(), track_record=TrackRecord(0, 0, 0, 1)
    )
    lines = list(diagnosis.described(Patient(answered, "benign", AT)))
    assert lines[0] == "answer: malignant"
    assert not any("track record" in line for line in lines), "none are like it yet"
    assert lines[-1] == f"label: benign, given {WHEN}"


def test_a_label_that_was_withdrawn_is_no_label_that_is_still_to_come():
    lines = list(diagnosis.described(Patient(ALONE, None, AT)))
    assert lines[-1] == f"label: withdrawn {WHEN}"


def test_the_visits_of_a_person_stand_together():
    later = msgspec.structs.replace(MADE, id="a18", answer="benign", at=AT)
    lines = list(diagnosis.described(Patient(MADE, visits=(MADE, later))))
    assert lines[-1].startswith("person s5, 2 visits of late: a17 (")
    assert lines[-1].endswith(f"refer), a18 ({WHEN}, benign)")
    many = Patient(MADE, visits=tuple(msgspec.structs.replace(MADE, id=f"b{n}") for n in range(30)))
    assert "30 visits of late; the latest of them: b20 (" in list(diagnosis.described(many))[-1]


def test_reasons_stand_below_their_learner_the_strongest_first():
    lines = list(diagnosis.described(Patient(MADE, reasons={"imaging": EXAMPLES[Reasons]})))
    at = next(k for k, line in enumerate(lines) if line.startswith("  imaging: "))
    assert lines[at + 1 : at + 6] == [
        "    log-odds +2.25, of which",
        "      radius +1.50",
        "      texture +0.88",
        "      site -0.38",
        "      the rest +0.25",
    ]


def test_what_this_user_may_not_read_is_named():
    lines = list(diagnosis.described(Patient(MADE, denied=("t.labels", "t.reasons.a"))))
    assert lines[-1] == "not shown, because this user may not read it: t.labels, t.reasons.a"


def test_nothing_is_rounded_to_certainty_and_intervals_are_rounded_outwards():
    sure = msgspec.structs.replace(
        MADE,
        chance={"benign": 0.0003, "malignant": 0.9997},
        track_record=TrackRecord(4000, 3999, 0.9961, 0.9999),
    )
    lines = list(diagnosis.described(Patient(sure)))
    assert lines[1] == "chance: benign <0.1 %, malignant >99.9 %"
    assert lines[2].endswith("of 4,000 diagnosed like this before, 3,999 were right (99 to 100 %)")


def test_a_learner_has_a_weight_only_where_it_is_an_expert():
    committee = msgspec.structs.replace(MADE, weights={"stack": 0.5, "hedge": 0.5})
    lines = [
        line for line in diagnosis.described(Patient(committee)) if line.startswith("  imaging")
    ]
    assert len(lines) == 1
    assert "weight" not in lines[0]


def test_the_label_is_the_last_word():
    def word(*words):
        last = last_word(Label("a", label, 0, amends) for label, amends in words)
        return None if last is None else last.label

    assert word() is None
    assert word(("benign", False), ("malignant", False)) == "benign", "a conflict changes nothing"
    assert word(("benign", False), ("malignant", True), ("benign", False)) == "malignant"
    assert word(("benign", False), (None, False)) is None
    assert word(("benign", False), (None, False), ("malignant", False)) == "malignant"
