"""A client that complains all the time is heard once in a while; everybody else always."""

import logging

import pytest

from agents.worker_log import Calm, Discreet


def record(name, message, *values):
    return logging.LogRecord(name, logging.ERROR, "file", 1, message, values, None)


def test_the_client_is_heard_once_per_kind_and_while():
    now = 100.0
    calm = Calm(30.0, lambda: now)
    verdicts = [calm.filter(record("aiokafka", "no node %d", n)) for n in range(3)]
    assert verdicts == [True, False, False]
    assert calm.filter(record("aiokafka", "no metadata")), "another kind"
    assert calm.filter(record("aiokafka.consumer", "no node %d", 1)), "another part"
    now += 31
    assert calm.filter(record("aiokafka", "no node %d", 9))


def test_others_are_always_heard():
    calm = Calm()
    assert [calm.filter(record("streams.engine", "opens again")) for _ in range(3)] == [True] * 3


def failed(message, *values):
    with pytest.raises(ValueError, match="p17") as caught:
        fail()
    trace = (caught.type, caught.value, caught.tb)
    return logging.LogRecord("mode", logging.ERROR, "file", 1, message, values, trace)


def fail():
    raise ValueError("patient p17")


def test_what_an_error_says_stays_out_of_the_log():
    for written in (failed("Crashed reason=%r", ValueError("patient p17")), failed("it failed")):
        assert Discreet().filter(written)
        text = logging.Formatter("%(message)s").format(written)
        assert "p17" not in text
        assert "ValueError at " in text
    assert logging.Formatter("%(message)s").format(written).startswith("it failed: ValueError")
