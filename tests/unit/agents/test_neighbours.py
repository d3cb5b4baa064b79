"""Ensembles side by side: whatever two of them would share is refused with a sentence."""

import re

import pytest

from agents.neighbours import check_apart
from settings.errors import InputError
from settings.loading import load_settings
from tests.deploy.files import DEPLOY


def settings(name, *overrides, bootstrap="broker:9092"):
    fixed = (f"name={name}", f"broker.bootstrap={bootstrap}")
    return load_settings(DEPLOY / "ensemble.toml", (*fixed, *overrides), environ={})


def refusal(left, right):
    with pytest.raises(InputError) as refused:
        check_apart({"a.toml": left, "b.toml": right})
    return str(refused.value)


def test_twenty_with_names_of_their_own_live_together():
    check_apart({f"{number}.toml": settings(f"e{number}") for number in range(20)})


@pytest.mark.parametrize(
    ("left", "right", "sentence"),
    [
        (settings("x"), settings("x"), "both call their ensemble x: give one of them another name"),
        (
            settings("x"),
            settings("y", "topics.prefix=x."),
            r"would share \d+ topics, x\.\S+ among them: give one of them another topics.prefix",
        ),
        (settings("x"), settings("x-reader"), "would share the consumer group x-reader"),
        (
            settings("x", "worker.state=/s"),
            settings("y", "worker.state=/s"),
            "would keep their state in one folder, /s: change worker.state",
        ),
        (
            settings("x", "worker.state=/s"),
            settings("y", "worker.state=/s/y"),
            "would keep their state in one folder, /s: change worker.state",
        ),
    ],
)
def test_what_two_would_share_is_refused(left, right, sentence):
    assert re.search(f"a.toml and b.toml {sentence}", refusal(left, right))


def test_topics_of_two_brokers_are_not_shared():
    check_apart(
        {
            "a.toml": settings("x"),
            "b.toml": settings("y", "topics.prefix=x.", bootstrap="elsewhere:9092"),
        }
    )
    one_of_many = settings("y", "topics.prefix=x.", bootstrap="elsewhere:9092,broker:9092")
    assert "topics" in refusal(settings("x"), one_of_many)
