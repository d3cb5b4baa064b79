"""The pipeline that users test their rules with: the page about it is true, and so is a restart."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

from agents.testing import Pipeline
from tests.inline_pipeline import JOINT, configured, lived, with_gaps

PAGE = Path(__file__).parents[3] / "docs/testing.md"


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The page, in a folder with the files that it shows."""
    text = PAGE.read_text()
    for name, language in (("ensemble.toml", "toml"), ("my_rules.py", "python")):
        shown = re.search(rf"`{name}`.*?```{language}\n(.*?)```", text, re.DOTALL)
        (tmp_path / name).write_text(shown[1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return text


def test_every_example_of_the_page_runs(page):
    examples = doctest.DocTestParser().get_doctest(page, {}, "testing.md", str(PAGE), 0)
    assert len(examples.examples) >= 20
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(examples).failed == 0


def test_several_partitions_run_as_one(page):
    Path("ensemble.toml").write_text(Path("ensemble.toml").read_text() + "[topics]\npartitions=4\n")
    pipeline = Pipeline("ensemble.toml")
    features = {"radius": 22.0, "texture": 18.0, "age": 61}
    assert all(pipeline.patient(f"p{number}", features).complete for number in range(20))
    assert pipeline.dead_letters == []


@pytest.mark.parametrize("changes", [(), JOINT, ("ensemble.mode=stack",)], ids=str)
def test_a_restart_changes_nothing_that_follows(tmp_path, changes):
    """What is sent after a restart is what would have been sent without it, bit by bit."""
    settings = configured(tmp_path, *changes)
    once, twice = lived(settings, 60, lag=7, labelled=40), lived(settings, 60, lag=7, labelled=40)
    twice.restart()
    rows = np.random.default_rng(9).random((20, 3))
    for pipeline in (once, twice):
        pipeline.now = 2_000_000  # soon after the last label
        for number, (x, y, z) in enumerate(rows.tolist()):
            pipeline.patient(f"q{number}", {"x": x, "y": y, "z": z})
            pipeline.label(f"q{number}", "ill" if x + z > 1 else "well")
        pipeline.label("p50", "ill")
    assert once.published == twice.published
    assert len(once.diagnoses) == 80


def test_a_restart_keeps_what_stands_in_for_missing_values(tmp_path):
    settings = configured(tmp_path, "ensemble.mode=stack")
    once, twice = with_gaps(settings), with_gaps(settings)
    twice.restart()
    for pipeline in (once, twice):
        for number in range(10):
            pipeline.patient(f"q{number}", {"x": 0.1 * number, "y": None, "z": "NA"})
            pipeline.label(f"q{number}", "ill")
    assert once.published == twice.published
