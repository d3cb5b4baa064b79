"""Several seeds, one after the other on one cluster, with their combined results."""

from collections.abc import Callable, Iterable
from typing import Any

from bench.faults.fault_plan import Plan
from bench.faults.injection import Say
from settings.errors import HbError
from streams.broker.reaper import temporary_broker

EXACT = ("lost", "double", "differing")
"""The figures that must be 0."""


def run_seeds(
    run: Callable[..., dict[str, Any]], plan: Plan, seeds: Iterable[int], say: Say
) -> dict[str, Any]:
    """Run each seed; a run that fails is reported and counted, and the next one starts.

    Figures that must be 0 and other counts are summed; of times the longest is reported.
    """
    reports: dict[int, dict[str, Any]] = {}
    unfinished = []
    with temporary_broker(brokers=plan.brokers, users=plan.users, short_lived=True) as cluster:
        for seed in seeds:
            try:
                reports[seed] = run(plan, seed, say, cluster)
            except HbError as error:
                unfinished.append(seed)
                say(f"seed {seed} did not come to its end: {error}")
            else:
                exact = {name: reports[seed]["figures"][name] for name in EXACT}
                say(f"seed {seed}: {exact}")
            for node in cluster.nodes:
                node.start()
    wrong = [s for s, report in reports.items() if any(report["figures"][n] for n in EXACT)]
    return {
        "settings": {"seeds": len(reports) + len(unfinished), "records": plan.records},
        "figures": _together([report["figures"] for report in reports.values()])
        | {"unfinished": len(unfinished)},
        "ratios": {},
        "seeds": {"right": len(reports) - len(wrong), "wrong": wrong, "unfinished": unfinished},
        "findings": [
            finding for report in reports.values() for finding in report.get("findings", ())
        ],
    }


def _together(figures: list[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for run in figures for name in run)
    return {
        name: (max if name.endswith("seconds") else sum)([run[name] for run in figures])
        for name in names
    }
