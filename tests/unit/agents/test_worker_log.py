"""A client that complains all the time is heard once in a while; everybody else always."""

import logging

from agents.worker_log import Calm


def record(name, message, *values):
    return logging.LogRecord(name, logging.ERROR, "file", 1, message, values, None)


def test_the_client_is_heard_once_per_kind_and_while():
    now = 100.0
    calm = Calm(30.0, lambda: now)
    said = [calm.filter(record("aiokafka", "no node %d", n)) for n in range(3)]
    assert said == [True, False, False]
    assert calm.filter(record("aiokafka", "no metadata")), "another kind"
    assert calm.filter(record("aiokafka.consumer", "no node %d", 1)), "another part"
    now += 31
    assert calm.filter(record("aiokafka", "no node %d", 9))


def test_others_are_always_heard():
    calm = Calm()
    assert [calm.filter(record("streams.engine", "opens again")) for _ in range(3)] == [True] * 3
