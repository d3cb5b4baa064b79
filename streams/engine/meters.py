"""What metrics are made of: descriptions, counters and histograms that take a whole batch at once.

prometheus-client's own histogram takes one observation per call, so a batch of delays would need as
many calls as it has records. Here it needs three.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from learners.arrays.types import Floats

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
LONG_SECONDS = (
    0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86_400.0, 3 * 86_400.0, 7 * 86_400.0,
    30 * 86_400.0, 90 * 86_400.0,
)  # fmt: skip
"""From a tenth of a second to three months."""
RECORDS = (1.0, 10.0, 100.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0, 100_000.0)

Labels = tuple[str, ...]


@dataclass(frozen=True)
class Spec:
    """The description of a metric: its full name, its help text, its labels."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: Labels = ()
    buckets: Sequence[float] = ()

    def family(self) -> "CounterMetricFamily | GaugeMetricFamily":
        """Return an empty family, for values that are computed at each scrape."""
        family = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        return family(self.name, self.help, labels=self.labels)


class Counter(Collector):
    """Counts, by labels."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._counts: dict[Labels, float] = {}

    def add(self, amount: float, *labels: str) -> None:
        """Count; an amount of 0 creates the series."""
        self._counts[labels] = self._counts.get(labels, 0.0) + amount

    def collect(self) -> Iterator[Metric]:
        """Return all counts."""
        family = self.spec.family()
        for labels, count in self._counts.items():
            family.add_metric(labels, count)
        yield family


class Histogram(Collector):
    """How many observations fell below each of some bounds, by labels."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._bounds = list(spec.buckets)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Take one observation."""
        self._of(labels)[bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value

    def observe_all(self, values: Floats, *labels: str) -> None:
        """Take many observations."""
        places = np.searchsorted(self._bounds, values, side="left")
        counts = np.bincount(places, minlength=len(self._bounds) + 1).tolist()
        self._counts[labels] = [a + b for a, b in zip(self._of(labels), counts, strict=True)]
        self._sums[labels] += float(values.sum())

    def _of(self, labels: Labels) -> list[int]:
        self._sums.setdefault(labels, 0.0)
        return self._counts.setdefault(labels, [0] * (len(self._bounds) + 1))

    def collect(self) -> Iterator[Metric]:
        """Return all counts, each with those of the smaller bounds."""
        names = [*map(str, self._bounds), "+Inf"]
        family = HistogramMetricFamily(self.spec.name, self.spec.help, labels=self.spec.labels)
        for labels, counts in self._counts.items():
            upto = np.cumsum(counts).tolist()
            family.add_metric(labels, list(zip(names, upto, strict=True)), self._sums[labels])
        yield family


class EnsembleRegistry(CollectorRegistry):
    """A registry that says of everything in it which ensemble it is about.

    One Prometheus may scrape many ensembles, whose learners and agents have the same names.
    """

    def __init__(self, ensemble: str) -> None:
        super().__init__(auto_describe=False)
        self._ensemble = ensemble

    def collect(self) -> Iterator[Metric]:
        """Return everything that is registered, with the ensemble's name."""
        return of_ensemble(self._ensemble, super().collect())


def of_ensemble(name: str, metrics: Iterable[Metric]) -> Iterator[Metric]:
    """Give every sample the label `ensemble`."""
    for metric in metrics:
        metric.samples = [
            sample._replace(labels={"ensemble": name, **sample.labels}) for sample in metric.samples
        ]
        yield metric


def filled(spec: Spec, samples: Iterable[tuple[Labels, float]]) -> Metric:
    """Return a family with these values."""
    family = spec.family()
    for labels, value in samples:
        family.add_metric(labels, value)
    return family
