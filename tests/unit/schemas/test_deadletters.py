"""Dead letters: headers there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learners.join.effects import Reason as JoinReason
from schemas.deadletters import from_message, headers, refused
from schemas.errors import RecordError
from schemas.kinds import MAX_DETAIL, MAX_INTEGER, MAX_MILLIS
from schemas.refusals import Reason

ERROR = RecordError(Reason.UNKNOWN_LABEL, "label: expected a label of the settings")
LETTER = refused(ERROR, topic="labels", partition=3, offset=41, at=5, key=b"a", value=b"\xff{")


@given(
    reason=st.sampled_from(Reason),
    detail=st.text(st.characters(exclude_categories=["Cs"]), max_size=2 * MAX_DETAIL),
    topic=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200),
    partition=st.integers(0, 2**31 - 1),
    offset=st.integers(0, MAX_INTEGER),
    at=st.integers(0, MAX_MILLIS),
    key=st.none() | st.binary(),
    value=st.none() | st.binary(),
)
def test_a_dead_letter_survives_its_journey(reason, detail, key, value, **place):
    letter = refused(RecordError(reason, detail), **place, key=key, value=value)
    again = from_message(headers(letter), key, value)
    assert again == letter
    assert again.detail == detail[:MAX_DETAIL]


def test_headers_are_text_under_one_prefix():
    assert headers(LETTER) == [
        ("hb-reason", b"unknown_label"),
        ("hb-topic", b"labels"),
        ("hb-detail", b"label: expected a label of the settings"),
        ("hb-partition", b"3"),
        ("hb-offset", b"41"),
        ("hb-at", b"5"),
        ("hb-v", b"1"),
    ]


def test_other_headers_and_later_reasons_are_let_be():
    altered = {
        **dict(headers(LETTER)),
        "hb-reason": b"invented_later",
        "hb-new": b"1",
        "trace": None,
    }
    letter = from_message(list(altered.items()), b"a", b"\xff{")
    assert letter.reason == "invented_later"
    assert letter.value == b"\xff{"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("hb-reason", None, Reason.OUT_OF_RANGE),
        ("hb-offset", b"", Reason.WRONG_TYPE),
        ("hb-offset", b"-1", Reason.WRONG_TYPE),
        ("hb-offset", b"4.5", Reason.WRONG_TYPE),
        ("hb-offset", b"9" * 30, Reason.WRONG_TYPE),
        ("hb-offset", "٣".encode(), Reason.WRONG_TYPE),
        ("hb-topic", b"\xff", Reason.NOT_UTF8),
        ("hb-v", b"2", Reason.WRONG_VERSION),
        ("hb-detail", b"d" * 1001, Reason.OUT_OF_RANGE),
    ],
)
def test_a_message_with_other_headers_is_no_dead_letter(name, text, reason):
    with pytest.raises(RecordError) as caught:
        from_message(list({**dict(headers(LETTER)), name: text}.items()), None, None)
    assert caught.value.reason is reason


@pytest.mark.parametrize("name", [name for name, _ in headers(LETTER)])
def test_every_header_is_needed(name):
    with pytest.raises(RecordError, match=name.removeprefix("hb-")) as caught:
        from_message([(n, t) for n, t in headers(LETTER) if n != name], None, None)
    assert caught.value.reason is Reason.MISSING_FIELD


def test_every_reason_of_the_join_is_a_reason_code():
    for reason in JoinReason:
        assert Reason(reason.value).meaning
