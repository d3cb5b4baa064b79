"""Counters and histograms: a batch at once counts as its observations one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client import Histogram as Plain
from prometheus_client.exposition import generate_latest

from streams.engine.meters import Counter, Histogram, Spec, filled

BOUNDS = (0.1, 1.0, 10.0)
SPEC = Spec("x_seconds", "histogram", "Some time.", ("agent",), BOUNDS)


def text(*collectors):
    registry = CollectorRegistry(auto_describe=False)
    for collector in collectors:
        registry.register(collector)
    return generate_latest(registry).decode()


values = st.floats(0, 100) | st.sampled_from(BOUNDS)


@given(st.lists(st.lists(values, max_size=20), max_size=5))
def test_many_at_once_are_as_one_by_one_and_as_the_librarys_own(batches):
    once, single = Histogram(SPEC), Histogram(SPEC)
    plain = Plain("x_seconds", "Some time.", ["agent"], buckets=BOUNDS, registry=None)
    for batch in batches:
        once.observe_all(np.array(batch), "a")
        single.observe_all(np.array([]), "a")
        plain.labels("a")
        for value in batch:
            single.observe(value, "a")
            plain.labels("a").observe(value)
    ours, theirs = counts(once), counts(plain)
    assert ours == counts(single) == theirs


def counts(collector):
    """Return all samples but the sums, whose last digit depends on the order of addition."""
    return {
        (sample.name, tuple(sample.labels.items())): sample.value
        for metric in collector.collect()
        for sample in metric.samples
        if not sample.name.endswith(("_sum", "_created"))
    }


def test_a_sum_is_kept():
    histogram = Histogram(SPEC)
    histogram.observe_all(np.array([0.5, 2.0]), "a")
    histogram.observe(0.25, "a")
    assert 'x_seconds_sum{agent="a"} 2.75' in text(histogram)


def test_counts_by_label():
    counter = Counter(Spec("x_total", "counter", "Something.", ("a", "b")))
    counter.add(2, "one", "two")
    counter.add(3, "one", "two")
    counter.add(0, "one", "three")
    assert text(counter).splitlines()[2:] == [
        'x_total{a="one",b="two"} 5.0',
        'x_total{a="one",b="three"} 0.0',
    ]


@pytest.mark.parametrize("kind", ["counter", "gauge"])
def test_values_of_a_scrape(kind):
    name = {"counter": "x_total", "gauge": "x"}[kind]
    family = filled(Spec(name, kind, "Something.", ("a",)), [(("1",), 2.0)])
    assert [(s.name, s.labels, s.value) for s in family.samples] == [(name, {"a": "1"}, 2.0)]
