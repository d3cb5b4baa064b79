"""Scrape configuration, rules and alerts: sound, tested both ways, and explained."""

import re
import subprocess

import pytest

from agents.monitor.metrics_page import ALL
from tests.conftest import need_tool
from tests.deploy.files import DEPLOY, NAME, ROOT, alerts, queries, read_yaml, records, rules

PROMETHEUS = DEPLOY / "prometheus"
TESTS = sorted((PROMETHEUS / "tests").glob("*.yml"))


def promtool(*arguments):
    done = subprocess.run(
        [need_tool("promtool", "prometheus"), *map(str, arguments)],
        cwd=PROMETHEUS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_and_its_rules_are_sound():
    promtool("check", "config", "--lint=all", "--lint-fatal", "prometheus.yml")


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_rules_and_alerts_do_as_their_cases_say(file):
    promtool("test", "rules", file)


@pytest.mark.parametrize("alert", alerts())
def test_every_alert_has_a_case_that_fires_and_one_that_does_not(alert):
    cases = [
        (bool(case["exp_alerts"]), bool(test["input_series"]))
        for file in TESTS
        for test in read_yaml(file)["tests"]
        for case in test.get("alert_rule_test", [])
        if case["alertname"] == alert
    ]
    assert {fires for fires, has_data in cases if has_data} == {True, False}


@pytest.mark.parametrize("alert", alerts())
def test_every_alert_says_how_bad_it_is_what_it_means_and_where_to_read_on(alert):
    rule = alerts()[alert]
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert "for" in rule
    notes = rule["annotations"]
    assert 10 < len(notes["summary"]) < 80
    assert notes["description"].endswith(".")
    assert notes["runbook_url"] == f"docs/runbook.md#{alert.lower()}"


def test_the_runbook_has_a_part_for_each_alert_and_no_other():
    text = (ROOT / "docs" / "runbook.md").read_text()
    parts = re.findall(r"^### (Hb\w+)\n(.*?)(?=^##|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert sorted(name for name, _ in parts) == sorted(alerts())
    for name, part in parts:
        assert part.startswith(alerts()[name]["labels"]["severity"].capitalize() + "."), name
        assert "**Look**:" in part, name
        assert "**Do**:" in part, name


def test_what_is_recorded_is_used():
    used = " ".join([rule["expr"] for rule in rules()] + list(queries().values()))
    wanted = set(NAME.findall(used))
    assert {name for name in wanted if ":" in name} == set(records())


def test_workers_serve_what_rules_and_panels_ask_for():
    served = {spec.name: spec.kind for spec in ALL}
    served |= {
        f"{name}_{part}": "histogram"
        for name, kind in served.items()
        if kind == "histogram"
        for part in ("bucket", "sum", "count")
    }
    texts = [rule["expr"] for rule in rules()] + list(queries().values())
    wanted = {name for text in texts for name in NAME.findall(text) if ":" not in name}
    assert wanted <= set(served)


@pytest.mark.parametrize("name", [name for name in records() if name.endswith(":max")])
def test_state_is_never_added_up_over_workers(name):
    expr = records()[name]["expr"]
    assert expr.startswith(("max without (instance, job) (", "max by (agent) ("))
