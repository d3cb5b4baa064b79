"""Odd inputs for every decoder: a short time for each, always the same inputs."""

import random
import time

import pytest

from bench.fuzz.fuzzing import Target, all_targets, limited_memory, tried
from bench.fuzz.mutations import mutated

SEED = 16
MOST = 400
SECONDS = 1.0
"""What a target has in the suite; `hb fuzz` runs for as long as you like."""


@pytest.fixture(scope="module")
def every():
    with all_targets() as targets, limited_memory():
        yield targets


def test_every_decoder_takes_or_refuses_what_it_gets(every):
    assert len(every) > 20
    for name, target in every.items():
        draw, end = random.Random(f"{SEED} {name}"), time.monotonic() + SECONDS
        for data in target.corpus:
            assert tried(name, target, data) is None
        for _ in range(MOST):
            data = mutated(draw, target.corpus)
            failure = tried(name, target, data)
            assert failure is None, (failure.target, failure.what, failure.where, data)
            if time.monotonic() > end:
                break


def test_what_is_neither_taken_nor_refused_is_found():
    def run(data):
        if data == b"refused":
            raise LookupError
        return {b"taken": 1}[data]

    target = Target([b"taken"], run, (LookupError,))
    assert tried("t", target, b"taken") is None
    assert tried("t", target, b"refused") is None
    failure = tried("t", Target([], int), b"x")
    assert (failure.target, failure.what) == ("t", "ValueError")


def test_a_seed_repeats_its_inputs():
    corpus = [b'{"id": "a", "x": [0.5, 1]}', b"b" * 40]
    inputs, repeated, reseeded = (
        [mutated(random.Random(s), corpus) for _ in range(9)] for s in (1, 1, 2)
    )
    assert inputs == repeated != reseeded


def test_what_would_fill_the_memory_is_found():
    with limited_memory():
        failure = tried("t", Target([], lambda data: bytes(1 << 40)), b"x")
    assert failure.what == "MemoryError"
