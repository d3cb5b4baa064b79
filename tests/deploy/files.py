"""Reads what is under deploy/: rules, dashboards, compose."""

import functools
import json
import re
from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "rules"
NAME = re.compile(r"\b(?:(?:system|learner|agent):)?hb_[a-z0-9_:]+")
"""A metric in a query, recorded or served by a worker."""


@functools.cache
def read_yaml(file):
    return YAML(typ="safe").load(file.read_text())


def rules(file="*.yml"):
    """Return every rule, recording ones first."""
    listed = [
        rule
        for path in sorted(RULES.glob(file), reverse=True)
        for group in read_yaml(path)["groups"]
        for rule in group["rules"]
    ]
    assert listed
    return listed


def alerts():
    return {rule["alert"]: rule for rule in rules("alerts.yml")}


def records():
    return {rule["record"]: rule for rule in rules("records.yml")}


def dashboards():
    files = sorted((DEPLOY / "grafana" / "dashboards").glob("*/*.json"))
    assert files
    return {file: json.loads(file.read_text()) for file in files}


def panels(dashboard):
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def queries():
    """Return every query of every panel: (dashboard, panel, reference) and PromQL."""
    return {
        (dashboard["title"], panel["title"], target["refId"]): target["expr"]
        for dashboard in dashboards().values()
        for panel in panels(dashboard)
        for target in panel["targets"]
    }
