"""Every kind of bad input has its reason code, and the error names the field, not the value."""

import json

import pytest

from schemas.errors import RecordError
from schemas.reading import LabelReader, Reader
from schemas.records import Feedback, Label, Prediction
from schemas.refusals import Reason
from schemas.rows import Feature, RowReader

LABELS = ["benign", "malignant"]
INSTANCE = {"v": 1, "id": "a17", "x": [41.5, "m"], "at": 1_760_000_000_000}
LABEL = {"v": 1, "id": "a17", "label": "benign", "at": 1_760_000_000_000}
PREDICTION = {
    "v": 1,
    "id": "a17",
    "learner": "imaging",
    "label": "benign",
    "phase": 1,
    "cube": "52",
    "rule": "logistic",
    "exploring": False,
    "trials": 3,
    "at": 1_760_000_000_000,
    "accuracy": 0.9,
    "votes": {"logistic": "benign"},
    "log_odds": [0.1],
}
FEEDBACK = {
    "v": 1,
    "id": "a17",
    "label": "benign",
    "predicted": "malignant",
    "phase": 1,
    "cube": "52",
    "rule": "logistic",
    "at": 1_760_000_000_000,
}

READERS = {
    "instance": (INSTANCE, RowReader([Feature("age"), Feature("sex", ("f", "m"))])),
    "required": (
        INSTANCE,
        RowReader([Feature("age", required=True), Feature("sex", ("f", "m"), required=True)]),
    ),
    "label": (LABEL, LabelReader(LABELS)),
    "plain label": (LABEL, Reader(Label)),
    "prediction": (
        PREDICTION,
        Reader(Prediction, known={"learner": ["imaging"], "label": LABELS, "rule": ["logistic"]}),
    ),
    "feedback": (
        FEEDBACK,
        Reader(Feedback, known={"label": LABELS, "predicted": LABELS, "rule": ["logistic"]}),
    ),
}


def changed(kind, **fields):
    """The good record of a kind with some fields replaced; None takes a field away."""
    merged = {**READERS[kind][0], **fields}
    return json.dumps({k: v for k, v in merged.items() if v is not None}).encode()


def raw(kind, field, text):
    """The good record of a kind with one field's JSON replaced."""
    return changed(kind, **{field: ""}).replace(b'""', text)


X = "x[0] (age)"
SEX = "x[1] (sex)"

CASES = [
    # kind, value, reason, the field that the error names
    ("label", None, Reason.EMPTY, ""),
    ("label", b"", Reason.EMPTY, ""),
    ("label", b'{"v":1,"id":"' + b"a" * 10_000_000 + b'"}', Reason.TOO_LARGE, ""),
    ("instance", b"[" * 10_000_000, Reason.TOO_LARGE, ""),
    ("label", raw("label", "id", b'"\xff"'), Reason.NOT_UTF8, ""),
    ("label", changed("label").decode().encode("utf-16"), Reason.NOT_UTF8, ""),
    ("label", changed("label")[:-1], Reason.MALFORMED, ""),
    ("label", changed("label")[:20], Reason.MALFORMED, ""),
    ("label", changed("label") + b"{}", Reason.MALFORMED, ""),
    ("label", b"\xef\xbb\xbf" + changed("label"), Reason.MALFORMED, ""),
    ("label", changed("label") + b"\x00", Reason.MALFORMED, ""),
    ("label", b"label", Reason.MALFORMED, ""),
    ("label", raw("label", "at", b"01"), Reason.MALFORMED, ""),
    ("label", raw("label", "id", b'"\\ud800"'), Reason.MALFORMED, ""),
    ("label", raw("label", "more", b'"\\udc00"'), Reason.MALFORMED, ""),
    ("label", raw("label", "more", b"[" * 5_000 + b"]" * 5_000), Reason.MALFORMED, ""),
    ("label", raw("label", "more", b"NaN"), Reason.MALFORMED, ""),
    ("label", raw("label", "more", b"{]"), Reason.MALFORMED, ""),
    ("label", changed("label", v=0), Reason.WRONG_VERSION, "v"),
    ("label", changed("label", v=None), Reason.MISSING_FIELD, "v"),
    ("plain label", b'{"id":"a:b","label":"b","at":5}', Reason.MISSING_FIELD, "v"),
    ("label", b'{"id":"a:b","label":"benign","at":5}', Reason.MISSING_FIELD, "v"),
    ("label", b"{}", Reason.MISSING_FIELD, "v"),
    ("instance", changed("instance", v=None), Reason.MISSING_FIELD, "v"),
    ("label", changed("label", v=2), Reason.WRONG_VERSION, "v"),
    ("label", changed("label", v="1"), Reason.WRONG_VERSION, "v"),
    ("label", changed("label", v=1.0), Reason.WRONG_VERSION, "v"),
    ("label", changed("label", v=True), Reason.WRONG_VERSION, "v"),
    ("label", changed("label", v=2, id=7), Reason.WRONG_VERSION, "v"),
    ("label", changed("label", id=None), Reason.MISSING_FIELD, "id"),
    ("label", changed("label", label=None), Reason.MISSING_FIELD, "label"),
    ("instance", changed("instance", x=None), Reason.MISSING_FIELD, "x"),
    ("prediction", changed("prediction", cube=None), Reason.MISSING_FIELD, "cube"),
    ("label", b"[]", Reason.WRONG_TYPE, "record"),
    ("label", b"null", Reason.WRONG_TYPE, "record"),
    ("label", b'"benign"', Reason.WRONG_TYPE, "record"),
    ("label", changed("label", id=17), Reason.WRONG_TYPE, "id"),
    ("label", changed("label", at="5"), Reason.WRONG_TYPE, "at"),
    ("label", changed("label", at=5.0), Reason.WRONG_TYPE, "at"),
    ("label", changed("label", at=True), Reason.WRONG_TYPE, "at"),
    ("label", raw("label", "label", b"7"), Reason.WRONG_TYPE, "label"),
    ("label", changed("label", amends=1), Reason.WRONG_TYPE, "amends"),
    ("instance", changed("instance", x="41.5"), Reason.WRONG_TYPE, "x"),
    ("instance", changed("instance", x=[True, "m"]), Reason.WRONG_TYPE, X),
    ("instance", changed("instance", x=[[1], "m"]), Reason.WRONG_TYPE, X),
    ("required", raw("instance", "x", b'[null,"m"]'), Reason.MISSING_FEATURE, X),
    ("required", raw("instance", "x", b'{"age":null,"sex":"m"}'), Reason.MISSING_FEATURE, X),
    ("required", changed("instance", x=["NA", "m"]), Reason.MISSING_FEATURE, X),
    ("required", changed("instance", x=[1, "?"]), Reason.MISSING_FEATURE, SEX),
    ("instance", changed("instance", x=["41.5", "m"]), Reason.WRONG_TYPE, X),
    ("instance", changed("instance", x=[41.5, 1]), Reason.WRONG_TYPE, SEX),
    ("instance", changed("instance", x={"age": "old", "sex": "m"}), Reason.WRONG_TYPE, X),
    ("prediction", changed("prediction", exploring=0), Reason.WRONG_TYPE, "exploring"),
    ("prediction", changed("prediction", accuracy="high"), Reason.WRONG_TYPE, "accuracy"),
    ("prediction", changed("prediction", votes=["benign"]), Reason.WRONG_TYPE, "votes"),
    ("prediction", changed("prediction", votes={"logistic": 1}), Reason.WRONG_TYPE, "votes.*"),
    ("prediction", changed("prediction", cube=52), Reason.WRONG_TYPE, "cube"),
    ("instance", raw("instance", "x", b'[NaN,"m"]'), Reason.NOT_FINITE, X),
    ("instance", raw("instance", "x", b'[-Infinity,"m"]'), Reason.NOT_FINITE, X),
    ("instance", raw("instance", "x", b'[1e999,"m"]'), Reason.NOT_FINITE, X),
    ("instance", raw("instance", "x", b'{"age":-1e999,"sex":"m"}'), Reason.NOT_FINITE, X),
    ("instance", raw("instance", "x", b"[" + b"1" * 9_999 + b',"m"]'), Reason.NOT_FINITE, X),
    ("label", raw("label", "at", b"1e999"), Reason.NOT_FINITE, "at"),
    ("prediction", raw("prediction", "accuracy", b"NaN"), Reason.NOT_FINITE, "accuracy"),
    ("label", changed("label", at=-1), Reason.OUT_OF_RANGE, "at"),
    ("label", changed("label", at=1_760_000_000_000_000), Reason.OUT_OF_RANGE, "at"),
    ("label", raw("label", "at", b"1" * 300), Reason.OUT_OF_RANGE, "at"),
    ("plain label", changed("label", label=""), Reason.OUT_OF_RANGE, "label"),
    ("plain label", changed("label", label="b" * 201), Reason.OUT_OF_RANGE, "label"),
    ("required", changed("instance", x=[1, ""]), Reason.MISSING_FEATURE, SEX),
    ("prediction", changed("prediction", accuracy=1.01), Reason.OUT_OF_RANGE, "accuracy"),
    ("prediction", changed("prediction", trials=-1), Reason.OUT_OF_RANGE, "trials"),
    ("prediction", changed("prediction", trials=2**53), Reason.OUT_OF_RANGE, "trials"),
    ("prediction", changed("prediction", cube="-1"), Reason.OUT_OF_RANGE, "cube"),
    ("prediction", changed("prediction", cube=""), Reason.OUT_OF_RANGE, "cube"),
    ("prediction", changed("prediction", cube=str(2**63)), Reason.OUT_OF_RANGE, "cube"),
    ("prediction", changed("prediction", cube="٣"), Reason.OUT_OF_RANGE, "cube"),
    ("prediction", changed("prediction", log_odds=[]), Reason.OUT_OF_RANGE, "log_odds"),
    ("prediction", changed("prediction", votes={"": "b"}), Reason.OUT_OF_RANGE, "names in votes"),
    ("label", changed("label", id=""), Reason.BAD_ID, "id"),
    ("label", changed("label", id="a" * 201), Reason.BAD_ID, "id"),
    ("label", changed("label", id="a\n17"), Reason.BAD_ID, "id"),
    ("instance", changed("instance", id="a\x85"), Reason.BAD_ID, "id"),
    ("prediction", changed("prediction", id="\x00"), Reason.BAD_ID, "id"),
    ("instance", changed("instance", x=[]), Reason.WRONG_DIMENSION, "x"),
    ("instance", changed("instance", x=[41.5]), Reason.WRONG_DIMENSION, "x"),
    ("instance", changed("instance", x=[41.5, "m", 2]), Reason.WRONG_DIMENSION, "x"),
    ("required", changed("instance", x={}), Reason.MISSING_FEATURE, X),
    ("required", changed("instance", x={"age": 4}), Reason.MISSING_FEATURE, SEX),
    ("required", changed("instance", x={"age": 4, "SEX": "m"}), Reason.MISSING_FEATURE, SEX),
    ("instance", changed("instance", x={"age": 4, "SEX": "m"}), Reason.EXTRA_FEATURE, "x"),
    (
        "instance",
        changed("instance", x={"age": 4, "sex": "m", "b": 1}),
        Reason.EXTRA_FEATURE,
        "x",
    ),
    ("required", changed("instance", x=[41.5, "M"]), Reason.UNKNOWN_CATEGORY, SEX),
    ("required", changed("instance", x={"age": 1, "sex": "x"}), Reason.UNKNOWN_CATEGORY, SEX),
    ("label", changed("label", label="unsure"), Reason.UNKNOWN_LABEL, "label"),
    ("prediction", changed("prediction", label="unsure"), Reason.UNKNOWN_LABEL, "label"),
    (
        "prediction",
        changed("prediction", votes={"logistic": "unsure"}),
        Reason.UNKNOWN_LABEL,
        "votes.*",
    ),
    ("feedback", changed("feedback", predicted="unsure"), Reason.UNKNOWN_LABEL, "predicted"),
    ("prediction", changed("prediction", learner="other"), Reason.UNKNOWN_LEARNER, "learner"),
    ("feedback", changed("feedback", rule="other"), Reason.UNKNOWN_RULE, "rule"),
    ("feedback", changed("feedback", votes={"z": "benign"}), Reason.UNKNOWN_RULE, "names in votes"),
]


@pytest.mark.parametrize(
    ("kind", "value", "reason", "field"),
    CASES,
    ids=[f"{i}-{case[2].value}-{case[3]}" for i, case in enumerate(CASES)],
)
def test_bad_input_is_refused_with_its_reason(kind, value, reason, field):
    good, reader = READERS[kind]
    batch = reader.read([json.dumps(good).encode(), value, json.dumps(good).encode()])
    assert batch.positions == [0, 2]
    [(position, error)] = batch.errors
    assert position == 1
    assert error.reason is reason
    assert error.detail.startswith(f"{field}: expected " if field else "expected ")
    assert len(str(error)) < 300


def test_every_reason_for_reading_has_a_case():
    using = {
        Reason.WRONG_PARTITION,
        Reason.RULE_FAILED,
        Reason.CONFLICT,
        Reason.UNKNOWN,
        Reason.EXPIRED,
        Reason.EVICTED,
        Reason.PENDING_FULL,
        Reason.FINAL,
        Reason.UNDECRYPTABLE,
    }
    assert {case[2] for case in CASES} == set(Reason) - using


def test_one_raises_what_a_batch_reports():
    with pytest.raises(RecordError, match=r"^empty: expected a JSON object$") as caught:
        Reader(Label).one(None)
    assert caught.value.reason is Reason.EMPTY


def test_reasons_are_codes_with_a_meaning():
    for reason in Reason:
        assert reason.value == reason.name.lower() == str(reason)
        assert reason.meaning
        assert "\n" not in reason.meaning
        assert Reason(reason.value) is reason
