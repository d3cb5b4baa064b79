"""Every experiment runs, and its result can be stored, shown and resumed."""

import json
import re
from importlib import import_module

import numpy as np
import pytest
from typer.testing import CliRunner

from cli.main import app
from experiments.catalogue import CATALOGUE, Options
from experiments.report.claims import below, claim, ordered
from experiments.report.result import Chart, Result, Series, Table
from experiments.report.result_store import Store, code_digest
from experiments.report.summary import improvements, summary
from experiments.report.write import write_report
from experiments.runner import run_each, run_one
from settings.errors import InputError

CHEAP = ("table1", "table2", "past", "drift", "theory")
"""Those that together touch every part; the others differ in settings only."""

runner = CliRunner()


@pytest.fixture
def alone(monkeypatch):
    monkeypatch.setenv("HB_JOBS", "1")


def short(name):
    module, function = CATALOGUE[name].function.split(":")
    experiment = getattr(import_module(module), function)
    options = {"steps": 120} if CATALOGUE[name].steps else {"quick": True}
    return experiment(2, seed=5, **options)


@pytest.mark.parametrize("name", CHEAP)
def test_experiments_run_and_repeat(name):
    first = short(name)
    assert first.name == name
    assert first.figures
    assert all(isinstance(value, float) for value in first.figures.values())
    if name == "past":
        assert short(name).figures == first.figures
    rows = [row for table in summary({name: first}) for row in table.rows]
    assert all(row[3] in {"yes", "no", "not decided"} for row in rows)
    if name == "table1":
        check_table1(first.figures)
        assert rows
        assert improvements({name: first}).rows[0][1] == 0.51


def check_table1(figures):
    """Scripts read these."""
    for method in ("WM", "AH", "LR", "AdaBoost", "SVM", "Best LL", "Average LL", "Worst LL"):
        for metric in ("PER", "FPR", "FNR"):
            assert 0 <= figures[f"{method}.{metric}"] <= 100
    assert figures["Best LL.PER"] <= figures["Worst LL.PER"]


def test_findings_are_computed_not_asserted():
    figures = {"WM.M=3.PER": 3.0, "WM.M=30.PER": 9.0}
    result = Result("learners", "", {}, figures)
    assert summary({"learners": result})[0].rows[0][3] == "yes"
    result.figures["WM.M=30.PER"] = 2.0
    assert summary({"learners": result})[0].rows[0][3] == "no"


def test_figures_within_their_standard_error_decide_nothing():
    figures = {"a.PER": 2.0, "a.PER se": 0.3, "b.PER": 2.4, "b.PER se": 0.4, "c.PER": 5.0}
    assert below(figures, "a", "b") is None
    assert below(figures, "a", "c") is True
    assert below(figures, "c", "b") is False
    assert ordered(figures, ["a", "b", "c"]) is None
    assert ordered(figures, ["c", "a", "b"]) is False
    assert claim("x", "1", "2", None, "why")[3:] == ["not decided", ""]


def example():
    chart = Chart("</script> & co", "x", "y", [Series("a", [1, 2], [3.0, None], [0.1, 0.2])])
    bars = Chart("bars", "x", "y", [Series("a", ["p", "q"], [3.0, 1.0])], kind="bar")
    table = Table("T <b>", ["m", "v"], [["x", 1.234], ["y", None]])
    return Result(
        "demo", "A <demo>", {"runs": 2}, {"x.PER": 1.0}, [table], [chart, bars], ["n < 3"]
    )


def test_results_survive_storage(tmp_path):
    store, result = Store(tmp_path), example()
    assert store.load("demo", {"a": 1}) is None
    store.save("demo", {"a": 1}, result)
    assert store.load("demo", {"a": 1}) == result
    assert store.load("demo", {"a": 2}) is None
    assert store.latest("demo") == result
    (tmp_path / "demo.json").write_bytes(b'{"key": ')
    assert store.latest("demo") is None


def test_the_digest_covers_what_an_experiment_leads_to():
    table1, theory = code_digest("experiments.paper.table1"), code_digest("experiments.theory")
    assert table1 != theory
    assert code_digest("experiments.paper.table1") == table1


def test_the_report_is_one_page_that_needs_nothing_else(tmp_path):
    text, page = write_report({"demo": example()}, tmp_path)
    html = page.read_text()
    assert "A &lt;demo&gt;" in html
    assert "T &lt;b&gt;" in html
    head = html.split("<script>")[0]
    assert "http" not in head
    local = html.replace('href="#', "").replace('href="data:', "")
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="', local)
    data = re.search(r"const charts=(.*?);\n// Draws", html, re.DOTALL)
    assert data is not None
    charts = json.loads(data[1].replace("<\\/", "</"))
    assert charts["demo-0"]["data"][0]["y"] == [3.0, None]
    assert charts["demo-1"]["data"][0]["type"] == "bar"
    markdown = text.read_text()
    assert "| x | 1.23 |" in markdown
    for image in re.findall(r"\]\((images/[^)]+)\)", markdown):
        assert (tmp_path / image).read_text().lstrip().startswith("<?xml")


def test_images_are_the_same_each_time(tmp_path):
    write_report({"demo": example()}, tmp_path / "a")
    write_report({"demo": example()}, tmp_path / "b")
    first, second = (tmp_path / k / "images" / "demo-1.svg" for k in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_the_command_prints_one_json_object(alone):
    run = runner.invoke(app, ["experiments", "past", "--quick", "--runs", "2", "--json"])
    assert run.exit_code == 0, run.output
    assert "WM.PER after 1000" in json.loads(run.stdout)["figures"]


def test_all_continues_where_it_stopped(tmp_path, alone, monkeypatch):
    command = ["experiments", "all", "--quick", "--only", "past", "--out", str(tmp_path), "--json"]
    first = runner.invoke(app, command)
    assert first.exit_code == 0, first.output
    monkeypatch.setattr("experiments.paper.curves.past", None)  # running it again would fail
    again = runner.invoke(app, command)
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout) == json.loads(first.stdout)
    assert (tmp_path / "report.html").exists()


def test_side_by_side_is_the_same_as_one_after_the_other():
    options, names = Options(2, 5, quick=True), ["past", "drift"]
    results, ticks = {}, []
    run_each(names, options, ticked=ticks.append, done=results.__setitem__, jobs=2)
    assert {name: result.figures for name, result in results.items()} == {
        name: run_one(name, options).figures for name in names
    }
    assert set(ticks) == set(names)


def test_a_failure_beside_others_is_reported(monkeypatch):
    """A worker process has its own catalogue, so it is given a name that it does not know."""
    monkeypatch.setitem(CATALOGUE, "nonsense", CATALOGUE["past"])
    with pytest.raises(KeyError, match="nonsense"):
        run_each(
            ["past", "nonsense"],
            Options(2, 5, quick=True),
            ticked=lambda _: None,
            done=lambda *_: None,
            jobs=2,
        )


def test_unknown_names_are_refused(tmp_path):
    run = runner.invoke(app, ["experiments", "all", "--only", "nonsense", "--out", str(tmp_path)])
    assert isinstance(run.exception, InputError)
    assert "table1" in str(run.exception)


def test_the_list_names_them_all():
    run = runner.invoke(app, ["experiments", "list", "--json"])
    assert set(json.loads(run.stdout)["experiments"]) == set(CATALOGUE)
    assert Options(quick=True).steps < Options().steps
    assert np.isfinite([entry.seconds for entry in CATALOGUE.values()]).all()
