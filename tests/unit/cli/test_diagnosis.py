"""`hb diagnosis`: one patient in sentences."""

import msgspec

from agents.clients.one_patient import Patient
from cli import diagnosis
from schemas.examples import EXAMPLES
from schemas.records import Diagnosis, Reasons, TrackRecord

MADE = EXAMPLES[Diagnosis]


def test_a_referral_says_what_it_may_be_and_why():
    said = list(diagnosis.described(Patient(MADE)))
    assert said[0] == "refer; cannot be excluded: benign, malignant (best guess: malignant)"
    assert said[1] == "chance: benign 32.1%, malignant 67.9%"
    assert said[2] == "track record: of 312 diagnosed like this before, 67% were right (59 to 74 %)"
    assert said[3] == "to know: several possible, learner missing, new cube"
    assert said[-2:] == ["  missing: history", "label: not known yet"]


def test_an_answer_says_so_and_a_label_follows():
    answered = msgspec.structs.replace(
        MADE, answer="malignant", cannot_exclude=(), why=(), track_record=TrackRecord(0, 0, 0, 1)
    )
    said = list(diagnosis.described(Patient(answered, "benign")))
    assert said[0] == "answer: malignant"
    assert not any("track record" in line for line in said), "none are like it yet"
    assert said[-1] == "label: benign"


def test_reasons_stand_below_their_learner_the_strongest_first():
    said = list(diagnosis.described(Patient(MADE, None, {"imaging": EXAMPLES[Reasons]})))
    at = next(k for k, line in enumerate(said) if line.startswith("  imaging: "))
    assert said[at + 1 : at + 6] == [
        "    log-odds +2.25, of which",
        "      radius +1.50",
        "      texture +0.88",
        "      site -0.38",
        "      the rest +0.25",
    ]


def test_what_this_user_may_not_read_is_named():
    said = list(diagnosis.described(Patient(MADE, denied=("t.labels", "t.reasons.a"))))
    assert said[-1] == "not shown, because this user may not read it: t.labels, t.reasons.a"
