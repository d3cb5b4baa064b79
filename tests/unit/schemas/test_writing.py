"""Records to bytes."""

import math

import pytest

from schemas.reading import Reader
from schemas.records import Instance, Prediction
from schemas.writing import encode

PREDICTION = Prediction("a", "imaging", "benign", 1, "0", "logistic", False, 0, 5)


def test_the_version_comes_first_and_what_is_unknown_is_left_out():
    assert encode(PREDICTION) == (
        b'{"v":1,"id":"a","learner":"imaging","label":"benign","phase":1,"cube":"0",'
        b'"rule":"logistic","exploring":false,"trials":0,"at":5}'
    )


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_written_as_missing(number):
    value = encode(Instance("a", (number,), 5))
    assert Reader(Instance).one(value).x == (None,)
