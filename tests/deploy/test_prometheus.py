"""Scrape configuration, rules and alerts: sound, tested both ways, and explained."""

import re
import subprocess

import pytest

from agents.monitor.metrics_page import ALL
from tests.conftest import need_tool
from tests.deploy.files import DEPLOY, NAME, ROOT, alerts, queries, read_yaml, records, rules

PROMETHEUS = DEPLOY / "prometheus"
TESTS = sorted((PROMETHEUS / "tests").glob("*.yml"))


RUNBOOK = (
    '{{ with printf "system:hb_runbook:info{ensemble=%q}" $labels.ensemble | query }}'
    '{{ . | first | label "url" }}{{ else }}docs/runbook.md{{ end }}'
)
"""Where the ensemble's workers say that the runbook is, or else where it is in the repository."""


def promtool(*arguments):
    process = subprocess.run(
        [need_tool("promtool", "prometheus"), *map(str, arguments)],
        cwd=PROMETHEUS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr


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
    assert "$labels.ensemble" in notes["summary"]
    assert 10 < len(re.sub(r"{{.*?}}", "", notes["summary"])) < 80
    assert notes["description"].endswith(".")
    assert notes["runbook_url"] == RUNBOOK + f"#{alert.lower()}"


def test_the_runbook_has_a_part_for_each_alert_and_no_other():
    text = (ROOT / "docs" / "runbook.md").read_text()
    parts = re.findall(r"^### (Hb\w+)\n(.*?)(?=^##|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert sorted(name for name, _ in parts) == sorted(alerts())
    for name, part in parts:
        assert part.startswith(alerts()[name]["labels"]["severity"].capitalize() + "."), name
        assert "**Look**:" in part, name
        assert "**Do**:" in part, name


def test_what_is_recorded_is_used():
    notes = [rule["annotations"]["runbook_url"] for rule in alerts().values()]
    used = " ".join([rule["expr"] for rule in rules()] + list(queries().values()) + notes)
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


SERVED = {spec.name: spec.labels for spec in ALL}


@pytest.mark.parametrize("name", [name for name in records() if name.endswith(":max")])
def test_state_is_never_added_up_over_workers(name):
    expr = records()[name]["expr"]
    metric = NAME.findall(expr)[0]
    labels = ("agent",) if name.startswith("agent:") else SERVED[metric]
    assert expr.startswith(f"max by ({', '.join(('ensemble', *labels))}) ({metric}")


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.get("alert") or rule["record"])
def test_labels_that_a_target_has_besides_are_left_out(rule):
    """What is kept is named, always with the ensemble; `without` only follows what is recorded."""
    matches = re.findall(r"\b(?:by|on) \(([^)]*)\)", rule["expr"])
    assert all(labels.split(", ")[0] == "ensemble" for labels in matches)
    raw = [name for name in NAME.findall(rule["expr"]) if ":" not in name]
    assert matches or not raw
    for dropped in re.findall(r"\bwithout \(([^)]*)\)", rule["expr"]):
        assert dropped == "complete"
