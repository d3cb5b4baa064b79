"""Every metric of the whole system, compared with what the topics lead to.

The figures that workers serve come from the state, and so do those computed here from the state as
it was read. Both must equal those of the recomputed state, to the last digit.
"""

import asyncio
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from agents.monitor.overview import figures
from agents.monitor.scores import Scorer, Sums
from agents.monitor.state_metrics import AGE, STATE, state_metrics
from audit.findings import Findings
from audit.partition_tables import PartitionTables, sums
from settings.errors import InputError
from settings.model import Settings
from streams.engine.meters import of_ensemble

Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]

_NAMES = {spec.name for spec in STATE}
_WITHIN = 30.0
_PAUSE = 0.2
_PATIENCE = 10.0
_CUT = "not compared: the start of the topics is gone"
_MOVED = "not compared: the stream moved meanwhile"


@dataclass(frozen=True)
class Page:
    """What a worker serves: the figures of the state, and the time of the state they show."""

    url: str
    samples: Samples
    at: float


def audit_metrics(
    settings: Settings,
    recomputed: Sequence[PartitionTables],
    live: Sequence[PartitionTables],
    findings: Findings,
    pages: Collection[tuple[Page, Page]] = (),
) -> None:
    """Compare the live figures, and those of pages read before and after, with the expected."""
    note = "" if all(part.whole for part in recomputed) else _CUT
    scorer = Scorer(settings)
    expected = samples(_metrics(settings, scorer, sums(settings, recomputed)))
    actual = samples(_metrics(settings, scorer, sums(settings, live)))
    _compare(findings, "metrics of the state", "state", actual, expected, note=note)
    for before, after in pages:
        moved = _MOVED if before.samples != after.samples else ""
        name = f"metrics at {after.url}"
        _compare(findings, name, after.url, after.samples, expected, note=note or moved)


def _metrics(settings: Settings, scorer: Scorer, of: Sums) -> Iterable[Metric]:
    return of_ensemble(settings.name, state_metrics(figures(settings, scorer, of)))


def samples(metrics: Iterable[Metric]) -> Samples:
    """Return the samples of the state's metrics, by name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): float(sample.value)
        for metric in metrics
        for sample in metric.samples
        if sample.name in _NAMES
    }


def _compare(
    findings: Findings, name: str, where: str, actual: Samples, expected: Samples, *, note: str
) -> None:
    keys = actual.keys() | expected.keys()
    wrong = [] if note else [key for key in keys if actual.get(key) != expected.get(key)]
    named = ", ".join(sorted({metric for metric, _ in wrong}))
    findings.table(
        name, f"{where} ({named})", values=len(keys), differing=len(wrong), note=note
    )  # fmt: skip


# Pages.


async def read_pages(urls: Sequence[str], since: float, token: str = "") -> list[Page]:
    """Read the metrics of some workers, none of them older than `since`."""
    return list(await asyncio.gather(*(_fresh(address(url), since, token) for url in urls)))


async def _fresh(url: str, since: float, token: str) -> Page:
    """Wait until a worker has read the state after `since`; a page is served at once."""
    deadline = time.monotonic() + _WITHIN
    while True:
        page = await asyncio.to_thread(read_page, url, token)
        if page.at >= since:
            return page
        if time.monotonic() > deadline:
            raise InputError(f"the worker at {url} serves old figures: it cannot read the state")
        await asyncio.sleep(_PAUSE)


def address(url: str) -> str:
    """Return the address of a worker's metrics, given that of any of its pages.

    >>> address("127.0.0.1:6066"), address("http://here:1/metrics")
    ('http://127.0.0.1:6066/metrics', 'http://here:1/metrics')
    """
    parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise InputError(f"{url} is not the address of a worker; write http://HOST:PORT")
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, "/metrics", "", ""))


def read_page(url: str, token: str = "") -> Page:
    """Read the metrics of one worker, with its token if it asks for one."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - see `address`
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310 - as above
            text = answer.read().decode()
        now = time.time()
        metrics = list(text_string_to_metric_families(text))
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise InputError(f"no metrics at {url}: {reason}") from error
    ages = [s.value for metric in metrics for s in metric.samples if s.name == AGE.name]
    return Page(url, samples(metrics), now - ages[0] if ages else 0.0)
