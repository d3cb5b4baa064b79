"""The dashboards are those that the code makes, whole, readable, and found by Grafana."""

import itertools
import json
import re

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from deploy.grafana import __main__ as generator
from tests.deploy.files import DEPLOY, NAME, dashboards, panels, queries, read_yaml, records

GRAFANA = DEPLOY / "grafana"
ALL = dashboards()
PANELS = [
    pytest.param(panel, id=f"{page['title']}/{panel['title']}")
    for page in ALL.values()
    for panel in panels(page)
]
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
OVERVIEW = "hb-ensembles"


def test_the_files_are_what_the_code_makes():
    pages = {str(file.relative_to(generator.FOLDER)): file.read_text() for file in ALL}
    assert pages == generator.rendered(), "run ./hb dashboards"


def test_writing_removes_what_is_no_longer_made(tmp_path, monkeypatch):
    monkeypatch.setattr(generator, "FOLDER", tmp_path)
    (tmp_path / "diagnosis").mkdir()
    (tmp_path / "diagnosis" / "old.json").write_text("{}")
    generator.main()
    written = {str(file.relative_to(tmp_path)) for file in tmp_path.glob("*/*.json")}
    assert written == set(generator.rendered())


@pytest.mark.parametrize("page", ALL.values(), ids=lambda page: page["uid"])
def test_grafanas_own_types_read_it_back_whole(page):
    assert json.loads(json.dumps(Dashboard.from_json(page), cls=JSONEncoder)) == page


def test_addresses_are_fixed():
    assert {page["uid"] for page in ALL.values()} == {
        "hb-quality",
        "hb-learners",
        "hb-pipeline",
        "hb-labels",
        OVERVIEW,
    }
    assert all(page["description"] and page["tags"] == ["hb"] for page in ALL.values())


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_explains_itself(panel):
    assert panel["description"].endswith(".")
    assert len(panel["description"]) > 20
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["datasource"] == SOURCE
    assert all(target["datasource"] == SOURCE for target in panel["targets"])


@pytest.mark.parametrize("page", ALL.values(), ids=lambda page: page["uid"])
def test_panels_have_numbers_and_lie_beside_each_other(page):
    numbers = [panel["id"] for panel in page["panels"]]
    assert len(set(numbers)) == len(numbers)
    titles = [panel["title"] for panel in panels(page)]
    assert len(set(titles)) == len(titles)
    places = [panel["gridPos"] for panel in page["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for a, b in itertools.combinations(places, 2):
        apart = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        assert apart or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]


@pytest.mark.parametrize("page", ALL.values(), ids=lambda page: page["uid"])
def test_variables_are_declared_and_used(page):
    declared = {variable["name"] for variable in page["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]+)", json.dumps([page["panels"], page["links"]])))
    assert used == declared


@pytest.mark.parametrize("page", ALL.values(), ids=lambda page: page["uid"])
def test_any_grafana_can_import_it(page):
    source = page["templating"]["list"][0]
    assert (source["name"], source["type"], source["query"]) == (
        "datasource",
        "datasource",
        "prometheus",
    )
    assert set(re.findall(r'"uid": "([^"]*)"', json.dumps(page))) == {page["uid"], "${datasource}"}


@pytest.mark.parametrize("page", ALL.values(), ids=lambda page: page["uid"])
def test_every_query_is_about_the_chosen_ensemble(page):
    variables = {variable["name"]: variable for variable in page["templating"]["list"]}
    exprs = [t["expr"] for panel in panels(page) for t in panel["targets"]]
    exprs += [annotation["expr"] for annotation in page["annotations"].get("list", [])]
    exprs += [
        variables[name]["query"] for name in ("runbook", "learner", "worker") if name in variables
    ]
    if page["uid"] == OVERVIEW:
        assert "$ensemble" not in json.dumps(page)
        return
    assert variables["ensemble"]["query"] == "label_values(hb_build_info, ensemble)"
    for expr in exprs:
        series = re.findall(r"(?:\bup\{|ALERTS|\bhb_|:hb_)", expr)
        assert len(series) == len(re.findall(r'ensemble=~?"\$ensemble\|?"', expr)), expr


def test_one_link_leads_to_the_runbook():
    for page in ALL.values():
        links = [link for link in page["links"] if link["title"] == "Runbook"]
        assert [link["url"] for link in links] == ["${runbook}"] * (page["uid"] != OVERVIEW)


def test_rates_have_the_names_that_people_know_from_the_console():
    (page,) = [page for page in ALL.values() if page["uid"] == "hb-quality"]
    assert [panel["title"] for panel in panels(page)[:3]] == [
        "Error rate",
        "Miss rate",
        "False alarms",
    ]
    text = json.dumps([*ALL.values()])
    assert not re.search(r"[Ww]rong diagnoses over|[Mm]issed positives", text)


def test_learners_and_workers_can_be_chosen():
    names = {variable["name"] for page in ALL.values() for variable in page["templating"]["list"]}
    assert names == {"datasource", "ensemble", "runbook", "learner", "worker"}


def test_recorded_series_exist():
    names = {name for expr in queries().values() for name in NAME.findall(expr)}
    assert {name for name in names if ":" in name} <= set(records())


def test_grafana_is_told_of_the_source_and_of_every_folder():
    sources = read_yaml(GRAFANA / "provisioning/datasources/prometheus.yaml")["datasources"]
    assert [(source["type"], source["isDefault"]) for source in sources] == [("prometheus", True)]
    scraped = read_yaml(DEPLOY / "prometheus" / "prometheus.yml")["global"]["scrape_interval"]
    assert sources[0]["jsonData"]["timeInterval"] == scraped
    providers = read_yaml(GRAFANA / "provisioning/dashboards/hb.yaml")["providers"]
    folders = {provider["options"]["path"].removeprefix("/etc/grafana/") for provider in providers}
    assert folders == {str(file.parent.relative_to(GRAFANA)) for file in ALL}
    assert len({provider["folderUid"] for provider in providers}) == len(providers)
