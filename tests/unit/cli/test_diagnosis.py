"""`hb diagnosis`: one patient in sentences."""

import msgspec

from cli import diagnosis
from schemas.examples import EXAMPLES
from schemas.records import Diagnosis, TrackRecord

MADE = EXAMPLES[Diagnosis]


def test_a_referral_says_what_it_may_be_and_why():
    said = list(diagnosis.described(MADE, None))
    assert said[0] == "refer; cannot be excluded: benign, malignant (best guess: malignant)"
    assert said[1] == "chance: benign 32.1%, malignant 67.9%"
    assert said[2] == "track record: of 312 diagnosed like this before, 67% were right (59 to 74 %)"
    assert said[3] == "to know: several possible, learner missing, new cube"
    assert said[-2:] == ["  missing: history", "label: not known yet"]


def test_an_answer_says_so_and_a_label_follows():
    answered = msgspec.structs.replace(
        MADE, answer="malignant", cannot_exclude=(), why=(), track_record=TrackRecord(0, 0, 0, 1)
    )
    said = list(diagnosis.described(answered, "benign"))
    assert said[0] == "answer: malignant"
    assert not any("track record" in line for line in said), "none are like it yet"
    assert said[-1] == "label: benign"
