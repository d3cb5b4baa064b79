"""A trace goes with its patient from the instances to the diagnosis, and nothing else does."""

import pytest

from agents.testing import Pipeline
from schemas.traces import HEADER
from streams.kafka.batch import Batch
from streams.kafka.topics import local
from tests.inline_pipeline import configured

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
GIVEN = f"00-{TRACE}-00f067aa0ba902b7-01".encode()
X, Z = b'{"v":1,"id":"p","x":{"x":0.2,"y":0.4},"at":1}', b'{"v":1,"id":"p","x":{"z":0.9},"at":1}'
ODD = [
    GIVEN.upper(),
    GIVEN + b"\n",
    GIVEN[:-1],
    GIVEN + b"-00",
    b"01" + GIVEN[2:],
    GIVEN.replace(TRACE.encode(), b"0" * 32),
    GIVEN.replace(b"00f067aa0ba902b7", b"0" * 16),
    b"",
    None,
    b"\xff" * 55,
    b"a" * 100_000,
]


@pytest.fixture
def pipeline(tmp_path):
    return Pipeline(configured(tmp_path))


def show(pipeline, learner, *values, headers=()):
    """Publish what one learner sees of the patient, with headers."""
    headers = [*headers, *((HEADER, value) for value in values)]
    value = X if learner == "a" else Z
    pipeline.publish(pipeline.topics.instances(learner), b"p", value, headers=headers)


def headers(pipeline, topic):
    return [batch.headers.get(0, ()) for batch in pipeline.published[topic]]


def test_it_is_carried_by_the_predictions_and_the_diagnosis(pipeline):
    show(pipeline, "a", GIVEN, headers=[("name", b"Anna")])
    pipeline.restart()
    show(pipeline, "b", GIVEN)
    assert headers(pipeline, pipeline.topics.predictions) == [((HEADER, GIVEN),)] * 2
    assert headers(pipeline, pipeline.topics.diagnoses) == [((HEADER, GIVEN),)]


def test_one_learner_is_enough_and_a_time_out_loses_nothing(pipeline):
    show(pipeline, "b", GIVEN)
    pipeline.restart()
    pipeline.wait("10s")
    assert headers(pipeline, pipeline.topics.diagnoses) == [((HEADER, GIVEN),)]


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_an_odd_value_is_ignored_and_the_patient_diagnosed(pipeline, value):
    show(pipeline, "a", value)
    show(pipeline, "b")
    assert headers(pipeline, pipeline.topics.predictions) == [(), ()]
    assert headers(pipeline, pipeline.topics.diagnoses) == [()]
    assert not pipeline.dead_letters


def test_two_values_in_one_record_are_ignored(pipeline):
    show(pipeline, "a", GIVEN, GIVEN)
    show(pipeline, "b")
    assert headers(pipeline, pipeline.topics.diagnoses) == [()]


def test_a_repeat_under_another_span_is_a_repeat(pipeline):
    show(pipeline, "a", GIVEN)
    show(pipeline, "a", GIVEN.replace(b"00f067aa0ba902b7", b"1" * 16))
    show(pipeline, "b", GIVEN)
    assert headers(pipeline, pipeline.topics.diagnoses) == [((HEADER, GIVEN),)]
    assert not pipeline.dead_letters


def test_of_a_batch_only_those_carry_it_that_came_with_it(pipeline):
    topic = pipeline.topics.instances("a")
    values = [b"unreadable", X, X.replace(b'"p"', b'"q"'), X.replace(b'"p"', b'"r"')]
    batch = Batch(
        topic, 0, 0, 4, 4, [0, 1, 2, 3], [pipeline.now] * 4, [b"o", b"p", b"q", b"r"], values,
        {0: ((HEADER, GIVEN),), 2: ((HEADER, GIVEN),)},
    )  # fmt: skip
    sent = pipeline.agents[local("a")].process(batch, pipeline.topics.deadletter)
    predictions = [(key, headers) for place, _, key, _, headers in sent if "predictions" in place]
    assert predictions == [(b"p", ()), (b"q", ((HEADER, GIVEN),)), (b"r", ())]
