"""One example of each record, for the JSON Schemas, the docs and the tests."""

from msgspec import Struct

from schemas.records import (
    Context,
    DeadLetter,
    Diagnosis,
    Erasure,
    Feedback,
    Instance,
    Label,
    Opinion,
    Prediction,
    Reasons,
    TrackRecord,
)
from schemas.refusals import Reason

_AT = 1_760_000_000_000

EXAMPLES: dict[type[Struct], Struct] = {
    Instance: Instance("a17", {"radius": 14.2, "texture": 20.1, "site": "left"}, _AT, "s5"),
    Prediction: Prediction(
        id="a17",
        learner="imaging",
        label="malignant",
        phase=1,
        cube="52",
        rule="logistic",
        exploring=False,
        trials=412,
        at=_AT + 20,
        accuracy=0.953,
        low=0.918,
        high=0.976,
        epsilon=0.62,
        votes={"logistic": "malignant", "always_benign": "benign"},
        log_odds=(2.3,),
        subject="s5",
    ),
    Context: Context("a17", (61.0, "referred"), _AT),
    Label: Label("a17", "malignant", _AT + 86_400_000, amends=True),
    Diagnosis: Diagnosis(
        id="a17",
        label="malignant",
        complete=False,
        missing=("history",),
        mode="wm",
        weights={"imaging": 0.64, "cytology": 0.36},
        learners={
            "imaging": Opinion(
                "malignant", "logistic", False, 412, accuracy=0.953, low=0.918, high=0.976
            ),
            "cytology": Opinion("benign", "always_benign", True, 0),
        },
        at=_AT + 40,
        answer="refer",
        cannot_exclude=("benign", "malignant"),
        chance={"benign": 0.3214, "malignant": 0.6786},
        track_record=TrackRecord(312, 209, 0.5942, 0.7411),
        why=("several_possible", "learner_missing", "new_cube"),
        learned=4120,
        support=(0.36, 0.64),
        subject="s5",
    ),
    Feedback: Feedback(
        id="a17",
        label="malignant",
        predicted="malignant",
        phase=1,
        cube="52",
        rule="logistic",
        at=_AT + 86_400_020,
        votes={"logistic": "malignant", "always_benign": "benign"},
        others=(0.7,),
        log_odds=(1.9,),
    ),
    Reasons: Reasons(
        id="a17",
        rule="logistic",
        log_odds=(2.25,),
        parts={"radius": (1.5,), "texture": (0.875,), "site": (-0.375,)},
        rest=(0.25,),
        at=_AT + 20,
    ),
    Erasure: Erasure("27ddb7a63f4ca2da098b172fc60de1c7", _AT),
    DeadLetter: DeadLetter(
        reason=Reason.UNKNOWN_LABEL.value,
        topic="labels",
        partition=3,
        offset=1041,
        detail="label: expected a label of the settings",
        at=_AT + 86_400_000,
        key=b"a17",
        value=b'{"v":1,"id":"a17","label":"unsure","at":1760086400000}',
    ),
}
