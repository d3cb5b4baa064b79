"""The short fault plans on every Kafka that is pinned, one cluster after the other."""

from collections.abc import Sequence
from typing import Any

from bench.faults import engine, pipeline
from bench.faults.fault_plan import PIPELINE_SHORT, SHORT, Plan
from bench.faults.injection import Say
from bench.faults.seeds import EXACT
from settings.errors import HbError
from streams.broker.jars import lock, locks
from streams.broker.reaper import temporary_broker

PLANS = {"engine": (engine.run, SHORT), "pipeline": (pipeline.run, PIPELINE_SHORT)}
"""Records through one agent, and patients through the whole pipeline with an audit at the end."""


def run(kafkas: Sequence[str], seed: int, secure: bool, say: Say) -> dict[str, Any]:
    """Run each plan on a cluster of each Kafka; on all that are pinned if none is named."""
    chosen = [lock(kafka).kafka for kafka in kafkas] or [pinned.kafka for pinned in locks()]
    rows = [row for kafka in chosen for row in _rows(kafka, seed, secure, say)]
    finished = [row for row in rows if row["finished"]]
    return {
        "settings": {"seed": seed, "secure": secure},
        "figures": {name: sum(row[name] for row in finished) for name in EXACT}
        | {"unfinished": len(rows) - len(finished)},
        "ratios": {},
        "versions": rows,
    }


def _rows(kafka: str, seed: int, secure: bool, say: Say) -> list[dict[str, Any]]:
    plans = {name: (work, _on(plan, secure)) for name, (work, plan) in PLANS.items()}
    brokers, users = SHORT.brokers, _on(SHORT, secure).users
    rows = []
    with temporary_broker(brokers=brokers, users=users, kafka=kafka) as cluster:
        for name, (work, plan) in plans.items():
            say(f"Kafka {kafka}, {name}")
            about = {"kafka": kafka, "plan": name, "records": plan.records}
            try:
                figures = work(plan, seed, say, cluster)["figures"]
            except HbError as error:
                say(f"it did not come to its end: {error}")
                rows.append({**about, "finished": False})
            else:
                exact = {name: figures[name] for name in EXACT}
                rows.append({**about, "finished": True, **exact})
            for node in cluster.nodes:
                node.start()
    return rows


def _on(plan: Plan, secure: bool) -> Plan:
    return plan.with_security() if secure else plan
