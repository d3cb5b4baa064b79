"""A real Prometheus scrapes two workers: every panel, rule and alert has an answer there."""

import asyncio
import re
import time
from collections import defaultdict
from contextlib import AsyncExitStack

from engine_kit import PATIENCE
from pipeline_kit import (
    arrive,
    await_count,
    create_topics,
    label,
    patients,
    publish,
    running,
    settings,
)
from prometheus_kit import Prometheus, prometheus

from streams.kafka.topics import Topics
from tests.deploy.files import alerts, dashboards, panels, records

SETTINGS = (
    "learners.a.exploration=1.0",  # the paper's own, so that it has a bound
    "ensemble.fusion_timeout=1s",
    "ensemble.per_target=0.5",
    "ensemble.fnr_target=0.4",
    "ensemble.miss_target=0.4",
    "ensemble.min_labels=0",
)
VARIABLES = {"$__rate_interval": "5s", "$learner": "a|b|c", "$worker": ".*"}
_VACUOUS = "Theorem 1 says nothing about so few patients, and then it is not drawn"
_QUIET = "no alert is raised in so short a time"
_LATE = "labels come late here, and Theorem 1 is about labels on time"
_OVERRULED = "errors have no bound where miss targets may overrule the vote"
_ERROR_BOUND = "system:hb_prediction_error_rate_bound:max"
MAY_BE_EMPTY = {
    _ERROR_BOUND: _OVERRULED,
    ("Diagnosis quality", "Error rate over time", "D"): _OVERRULED,
    ("Learners", "The learners' bound, relative", "A"): _LATE,
    ("Pipeline", "Alerts firing now", "A"): _QUIET,
    ("Learners", "Of the learners (estimated)", "B"): _VACUOUS,
}
SELECTOR = re.compile(r"\b(?:up|(?:(?:system|learner|agent):)?hb_[a-z0-9_:]+)(?:\{[^}]*\})?")


async def flow(config, first, n=120):
    """Send patients: most with a label, some without one learner, some records that are bad."""
    topics, address = Topics.of(config), config.broker.bootstrap
    ids, features, truth = patients(n, seed=first)
    ids = [f"{patient}-{first}" for patient in ids]
    await arrive(config, ids, features)
    seen_by_two = [f"lonely-{number}-{first}" for number in range(10)]
    for name, x in (("a", [0.4, 0.6]), ("b", [0.7])):
        instances = [
            (lonely, {"v": 1, "id": lonely, "x": x, "at": 1_700_000_000_000})
            for lonely in seen_by_two
        ]
        await publish(address, topics.instances(name), instances)
    await publish(address, topics.instances("a"), [("bad", b"{"), ("worse", b"")])
    await await_count(config, topics.diagnoses, first + n + len(seen_by_two))
    await label(config, ids, truth)
    contrary = ["benign" if word == "malignant" else "malignant" for word in truth[:5]]
    await label(config, ids[:10], contrary + truth[5:10])  # five conflicts, five said twice
    return n + len(seen_by_two)


def substituted(expr, ensemble):
    for name, value in {**VARIABLES, "$ensemble": ensemble}.items():
        expr = expr.replace(name, value)
    assert "$" not in expr.replace('"$1"', ""), expr
    return expr


async def unanswered(asked: Prometheus, ensemble: str):
    """Return everything that has no answer yet; an error fails at once."""
    missing = []
    for page in dashboards().values():
        for panel in panels(page):
            for target in panel["targets"]:
                ask = asked.now if target["instant"] else asked.lately
                place = page["title"], panel["title"], target["refId"]
                if (
                    not await ask(substituted(target["expr"], ensemble))
                    and place not in MAY_BE_EMPTY
                ):
                    missing.append(place)
    missing += [
        name for name in records() if not await asked.now(name) and name not in MAY_BE_EMPTY
    ]
    for name, rule in alerts().items():
        await asked.now(rule["expr"])
        for selector in SELECTOR.findall(rule["expr"]):
            if not await asked.now(selector) and selector not in MAY_BE_EMPTY:
                missing.append((name, selector))
    return missing


async def choices(asked: Prometheus, ensemble: str):
    """Return what each variable of a dashboard offers."""
    offered = {}
    for page in dashboards().values():
        for variable in page["templating"]["list"]:
            if variable["type"] == "datasource":
                continue
            series, name = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]).groups()
            series = substituted(series, ensemble)
            values = await asked.get(f"label/{name}/values", **{"match[]": series})
            offered[variable["name"]] = values
        for annotation in page["annotations"].get("list", []):
            await asked.now(substituted(annotation["expr"], ensemble))
    return offered


async def until_answered(asked: Prometheus, ensemble: str, seconds: float = PATIENCE):
    deadline = time.monotonic() + seconds
    while missing := await unanswered(asked, ensemble):
        assert time.monotonic() < deadline, missing
        await asyncio.sleep(0.5)  # Prometheus does not announce that it has scraped


async def value(asked: Prometheus, query: str):
    (series,) = await asked.now(query)
    return float(series["value"][1])


async def raised(asked: Prometheus):
    """Return the alerts that are pending or firing, by ensemble."""
    names = defaultdict(set)
    for alert in (await asked.get("alerts"))["alerts"]:
        names[alert["labels"]["ensemble"]].add(alert["labels"]["alertname"])
    return names


async def until_raised(asked: Prometheus, ensemble: str, alert: str, seconds: float = PATIENCE):
    deadline = time.monotonic() + seconds
    while alert not in (names := await raised(asked))[ensemble]:
        assert time.monotonic() < deadline, names
        await asyncio.sleep(0.2)


async def until(asked: Prometheus, query: str, wanted: float, seconds: float = PATIENCE):
    deadline = time.monotonic() + seconds
    while not (series := await asked.now(query)) or float(series[0]["value"][1]) != wanted:
        assert time.monotonic() < deadline, (query, series)
        await asyncio.sleep(0.2)


async def test_every_panel_rule_and_alert_has_an_answer(broker_address, prefix, tmp_path):
    name = prefix.strip(".")
    config = settings(tmp_path, broker_address, name, *SETTINGS)
    state = f"worker.state={tmp_path / 'second'}"
    second = settings(tmp_path, broker_address, name, *SETTINGS, state)
    await create_topics(config)
    async with running(config, "local:a", "local:b") as first, AsyncExitStack() as stack:
        other_app = await stack.enter_async_context(running(second, "local:c", "ensemble"))
        targets = ["{}:{}".format(*app.web.address) for app in (first, other_app)]
        async with prometheus(tmp_path, {name: targets}) as asked:
            sent = await flow(config, 0)
            await until(asked, "sum(system:hb_fusions_total:max)", sent)
            sent += await flow(config, sent)
            await until_answered(asked, name)

            # Counted once, though both workers tell it.
            await until(asked, "sum(system:hb_fusions_total:max)", sent)
            assert await value(asked, 'count(hb_fusions_total{complete="true"})') == 2
            outcomes = {"settled": 240, "conflict": 10, "duplicate": 10}
            for outcome, count in outcomes.items():
                await until(asked, f'system:hb_labels_total:max{{outcome="{outcome}"}}', count)
            # On a busy machine some wait in vain for a learner that has not started yet.
            assert await value(asked, 'sum(system:hb_fusions_total:max{complete="false"})') >= 20
            assert await value(asked, "sum(hb_dead_letters_total)") == 4 + 10

            offered = await choices(asked, name)
            assert offered == {
                "ensemble": [name],
                "runbook": ["http://127.0.0.1:6066/runbook"],
                "learner": ["a", "b", "c"],
                "worker": sorted(targets),
            }
            groups = (await asked.get("rules"))["groups"]
            states = {rule["health"] for group in groups for rule in group["rules"]}
            assert states == {"ok"}
            # One patient in thirteen, or more, was not seen by all in time.
            await until_raised(asked, name, "HbIncompleteFusions")

            await stack.aclose()
            await until_raised(asked, name, "HbWorkerDown")
            assert await value(asked, "sum(system:hb_fusions_total:max)") == sent


async def test_three_ensembles_in_one_prometheus(broker_address, prefix, tmp_path):
    """One is well, one lacks a learner's instances, one has lost its worker."""
    well, partial, gone = names = [f"{prefix.strip('.')}-{word}" for word in ("w", "p", "g")]
    configs = {}
    for name, timeout in zip(names, ("60s", "1s", "60s"), strict=True):
        (folder := tmp_path / name).mkdir()
        change = f"ensemble.fusion_timeout={timeout}"
        configs[name] = settings(folder, broker_address, name, change)
        await create_topics(configs[name])
    async with AsyncExitStack() as stack, AsyncExitStack() as leaving:
        targets = {}
        for name in names:
            until_gone = leaving if name == gone else stack
            app = await until_gone.enter_async_context(running(configs[name]))
            targets[name] = ["{}:{}".format(*app.web.address)]
        asked = await stack.enter_async_context(prometheus(tmp_path, targets))
        for number, name in enumerate(names, start=20):
            count = f'sum(system:hb_fusions_total:max{{ensemble="{name}"}})'
            await until(asked, count, 0)  # seen at 0, so that it rises
            await seen(configs[name], number, "ab" if name == partial else "abc")
            await until(asked, count, number)
        await leaving.aclose()
        await until_raised(asked, partial, "HbIncompleteFusions")
        for alert in ("HbWorkerDown", "HbNoWorkers"):
            await until_raised(asked, gone, alert)
        raised_alerts = await raised(asked)
        assert raised_alerts[partial] & raised_alerts[gone] == set()
        assert raised_alerts[well] == set(), raised_alerts


async def seen(config, n, learners):
    """Let some learners see patients."""
    rows = {"a": [0.4, 0.6], "b": [0.7], "c": [0.4, 0.7]}
    for name in learners:
        records = [
            (patient, {"v": 1, "id": patient, "x": rows[name], "at": 1_700_000_000_000})
            for patient in (f"p{number}" for number in range(n))
        ]
        await publish(config.broker.bootstrap, Topics.of(config).instances(name), records)
