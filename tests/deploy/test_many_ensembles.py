"""Twenty ensembles in one Prometheus: each alert fires for its own only, with its own runbook."""

import re

import pytest
from ruamel.yaml import YAML

from tests.deploy.files import DEPLOY, alerts, read_yaml
from tests.deploy.test_prometheus import TESTS, promtool

N = 20
RULES = DEPLOY / "prometheus" / "rules"


def cases(alert, *, fires):
    """Return the tests in which an alert fires at least once, or is asked about and never fires."""
    for file in TESTS:
        page = read_yaml(file)
        for test in page["tests"]:
            asked = [c for c in test.get("alert_rule_test", []) if c["alertname"] == alert]
            if asked and test["input_series"] and any(c["exp_alerts"] for c in asked) == fires:
                yield page, test, asked


def renamed(series, name):
    return [{**entry, "series": entry["series"].replace('ensemble="e"', name)} for entry in series]


def expected(alert, name, url):
    """Return the same alert of another ensemble."""
    notes = {
        key: re.sub(r"^e: ", f"{name}: ", text) for key, text in alert["exp_annotations"].items()
    }
    notes["runbook_url"] = notes["runbook_url"].replace("docs/runbook.md", url)
    return {"exp_labels": {**alert["exp_labels"], "ensemble": name}, "exp_annotations": notes}


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_fires_for_its_own_ensemble_only(alert, tmp_path):
    page, ill, asked = next(cases(alert, fires=True))
    well = next(
        (test for _, test, _ in cases(alert, fires=False) if test["interval"] == ill["interval"])
    )
    series, wanted = [], []
    (case,) = [c for c in asked if c["exp_alerts"]][:1]
    for number in range(N):
        name, url = f"e{number:02}", f"https://runbook.invalid/{number}/"
        like = ill if number % 2 else well
        series += renamed(like["input_series"], f'ensemble="{name}"')
        info = f'hb_runbook_info{{ensemble="{name}", url="{url}", instance="w1", job="hb"}}'
        series.append({"series": info, "values": "1x2000"})
        if number % 2:
            wanted += [expected(alert, name, url) for alert in case["exp_alerts"]]
    test = {
        "interval": ill["interval"],
        "input_series": series,
        "alert_rule_test": [{**case, "exp_alerts": wanted}],
    }
    file = tmp_path / "twenty.yml"
    files = [str(RULES / name) for name in ("records.yml", "alerts.yml")]
    YAML(typ="safe").dump({**page, "rule_files": files, "tests": [test]}, file)
    promtool("test", "rules", file)
