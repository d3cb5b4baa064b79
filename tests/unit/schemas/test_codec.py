"""Records to bytes."""

import math

import pytest

from schemas.codec import checked, encode
from schemas.errors import RecordError
from schemas.reasons import Reason
from schemas.records import Instance, Label, Prediction

PREDICTION = Prediction("a", "imaging", "benign", 1, "0", "logistic", False, 0, 5)


def test_the_version_comes_first_and_what_is_unknown_is_left_out():
    assert encode(PREDICTION) == (
        b'{"v":1,"id":"a","learner":"imaging","label":"benign","phase":1,"cube":"0",'
        b'"rule":"logistic","exploring":false,"trials":0,"at":5}'
    )


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_no_number_is_written_that_is_not_finite(number):
    assert b"null" in encode(Instance("a", (number,), 5))
    with pytest.raises(RecordError, match=r"^wrong_type: x\[0\]: expected a finite number"):
        checked(Instance("a", (number,), 5))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (Label("", "benign", 5), Reason.BAD_ID),
        (Label("a\t", "benign", 5), Reason.BAD_ID),
        (Label("\ud800", "benign", 5), Reason.NOT_UTF8),
        (Label("a", "benign", -5), Reason.OUT_OF_RANGE),
        (Label("a", "benign", 5.5), Reason.WRONG_TYPE),
        (Label("a", None, 5), Reason.WRONG_TYPE),
        (Instance("a", "text", 5), Reason.WRONG_TYPE),
        (Instance("a", tuple(range(100_000)), 5), Reason.TOO_LARGE),
    ],
)
def test_records_made_from_bad_data_are_refused_before_they_travel(record, reason):
    with pytest.raises(RecordError) as caught:
        checked(record)
    assert caught.value.reason is reason
