"""What an issuer answers is a token that ends, or none."""

import pytest

from streams.kafka.tokens import read_answer


@pytest.mark.parametrize(
    ("answer", "life"),
    [
        (b'{"access_token": "a.b.c", "expires_in": 90}', 90.0),
        (b'{"access_token": "a.b.c", "expires_in": "90", "scope": "kafka"}', 90.0),
        (b'{"access_token": "a.b.c"}', 60.0),
        (b'{"access_token": "a.b.c", "expires_in": null}', 60.0),
    ],
)
def test_a_token_and_its_life(answer, life):
    assert read_answer(answer) == ("a.b.c", life)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"error": "invalid_scope"}',
        b'{"access_token": ""}',
        b'{"access_token": null}',
        b'{"access_token": "a", "expires_in": "soon"}',
        b'{"access_token": "a", "expires_in": "NaN"}',
        b'{"access_token": "a", "expires_in": "Infinity"}',
    ],
)
def test_what_is_no_token_or_would_never_be_renewed(answer):
    with pytest.raises(ValueError, match="token"):
        read_answer(answer)
