"""Every place that prints or exports a bound or an interval asks `learners.theory.promises`.

Two nets. The functions that compute bounds and intervals may be used only by the promises, by what
they are made of, and by experiments that check them. And whatever is named like a bound or an
interval, in records, metrics, reports, pages and commands, is listed here with where it comes from:
a new one fails until it is looked at.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = "agents audit cli deploy experiments learners schemas settings streams bench"
SOURCES = sorted(
    path for room in ROOMS.split() for path in (ROOT / room).rglob("*.py") if path.is_file()
)

FIGURES = {
    "learners.theory.bounds",
    "learners.theory.intervals",
    "learners.theory.running_mean",
    "learners.fusion.late_labels.regret_bounds",
    "learners.fusion.late_labels.bound_at_delay",
    "learners.fusion.hedge.small_loss_regret",
    "learners.assessment.referral.furthest",
}
"""What computes a bound or an interval, whether or not it holds."""

MAY_COMPUTE = {
    "learners/theory/promises.py": "decides",
    "learners/local/iup.py": "the index is made of the same logarithm",
    "learners/assessment/prior_strength.py": "weighs beliefs by the log of the factorial alone",
    "cli/plan_bounds.py": "says from where on a bound says anything",
    "experiments/theory.py": "holds the theorems against runs",
    "experiments/known_oracle.py": "holds Corollary 1 and the interval against a known truth",
    "experiments/drift.py": "gives the bound by delay beside the regret that was measured",
}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def computes(path):
    return any(name == figure or name.startswith(f"{figure}.") for name in imports(path)
               for figure in FIGURES)  # fmt: skip


def test_no_other_module_computes_a_bound_or_an_interval():
    modules = {str(path.relative_to(ROOT)) for path in SOURCES if computes(path)}
    unknown = modules - MAY_COMPUTE.keys()
    assert not unknown, f"ask learners.theory.promises instead: {sorted(unknown)}"
    assert not MAY_COMPUTE.keys() - modules, "these compute none any more: take them off the list"


SHOWN = {
    # Record fields and payloads: filled from `promises.confidence`, or nan and so absent.
    ("schemas/records.py", "low"), ("schemas/records.py", "high"),
    ("schemas/records.py", "epsilon"),
    ("learners/local/learner.py", "low"), ("learners/local/learner.py", "high"),
    ("learners/local/learner.py", "epsilon"),
    ("learners/payloads.py", "low"), ("learners/payloads.py", "high"),
    ("learners/payloads.py", "epsilon"),
    ("schemas/examples.py", "low"), ("schemas/examples.py", "high"),
    ("schemas/examples.py", "epsilon"),
    # The scores, which metrics, the console, `hb status` and the demo show.
    ("agents/monitor/scores.py", "low"), ("agents/monitor/scores.py", "high"),
    ("agents/monitor/recent.py", "low"), ("agents/monitor/recent.py", "high"),
    ("agents/monitor/scores.py", "bound"), ("agents/monitor/scores.py", "error_bounds"),
    ("agents/monitor/state_metrics.py", "hb_regret_bound"),
    ("agents/monitor/state_metrics.py", "hb_prediction_error_rate_bound"),
    ("agents/monitor/state_metrics.py", "hb_accuracy_low"),
    ("agents/monitor/state_metrics.py", "hb_accuracy_high"),
    ("deploy/grafana/learners.py", "low"), ("deploy/grafana/learners.py", "high"),
    ("agents/monitor/console/snapshot.py", "bound"),
    ("agents/monitor/console/snapshot.py", "low"), ("agents/monitor/console/snapshot.py", "high"),
    ("agents/monitor/console/learner_details.py", "low"),
    ("agents/monitor/console/learner_details.py", "high"),
    ("cli/status_screen.py", "regret_bound"), ("cli/demo/summary.py", "bound"),
    # Replays and plans.
    ("audit/replay/score.py", "bound"), ("audit/replay/score.py", "regret_bound"),
    ("cli/replay.py", "regret_bound"),
    ("cli/plan_bounds.py", "regret_bound"), ("cli/plan_bounds.py", "by_delay"),
    ("cli/plan_bounds.py", "regret_bound_against_best_expert"),
    ("cli/plan_bounds.py", "regret_bound_against_best_local_oracle"),
}  # fmt: skip
"""File and name of every figure that is a bound or an interval, and is shown."""

OTHERS = {
    ("cli/init.py", "bound"), ("audit/evaluation/evaluate.py", "bound"),
    ("learners/fusion/base.py", "bound"), ("cli/features.py", "low"), ("cli/features.py", "high"),
    ("schemas/reading.py", "bound"),
}  # fmt: skip
"""Options and values of settings, and the size of a record."""

NO_PROMISE = {
    "settings/", "learners/rules/", "bench/", "streams/", "experiments/",
    "learners/local/scaling.py",
}  # fmt: skip
"""Where such names mean something else, or are measured."""

_NAME = re.compile(r"(^|_)(low|high|epsilon|bounds?|interval|bound_against_\w+|by_delay)$")


def names(path):
    """Return the fields and keys of a module that are named like a bound or an interval."""
    for node in ast.walk(ast.parse(path.read_text())):
        name = None
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value
        elif isinstance(node, ast.keyword):
            name = node.arg
        if name and name.isidentifier() and _NAME.search(name):
            yield name


def test_every_figure_that_is_shown_is_listed():
    figures = {
        (name, field)
        for path in SOURCES
        if not (name := str(path.relative_to(ROOT))).startswith(tuple(NO_PROMISE))
        for field in names(path)
    }
    unknown = figures - SHOWN - OTHERS
    assert not unknown, f"is there a theorem for it? list it here: {sorted(unknown)}"
    gone = (SHOWN | OTHERS) - figures
    assert not gone, f"these are shown no more: {sorted(gone)}"


@pytest.mark.parametrize(
    ("file", "asked"),
    [
        ("agents/local_learner.py", "confidence"),
        ("agents/monitor/recent.py", "window_interval"),
        ("agents/monitor/reliability.py", "share_interval"),
        ("agents/monitor/reliability.py", "window_interval"),
        ("agents/monitor/scores.py", "regret_bound"),
        ("agents/monitor/scores.py", "error_bound"),
        ("agents/monitor/scores.py", "share_interval"),
        ("agents/monitor/console/learner_details.py", "share_interval"),
        ("audit/replay/score.py", "regret_bound"),
        ("audit/replay/player.py", "regret_bound"),
        ("learners/assessment/assessment.py", "share_interval"),
        ("cli/plan_bounds.py", "average_limit"),
        ("cli/plan_bounds.py", "miss_rate_gaps"),
        ("cli/plan_bounds.py", "oracle_bound"),
        ("cli/plan_bounds.py", "planned_confidence"),
        ("cli/plan_bounds.py", "why_no_local_bound"),
        ("cli/plan_bounds.py", "planned_regret_bound"),
    ],
)
def test_the_sources_of_shown_figures_ask(file, asked):
    assert f"learners.theory.promises.{asked}" in set(imports(ROOT / file))


def test_pages_and_dashboards_show_what_the_scores_have():
    """The console's scripts and Grafana compute no bound of their own: they show fields by name."""
    for path in (ROOT / "agents/monitor/console/static").glob("*.js"):
        assert not re.search(r"Math\.(sqrt|log)\b", path.read_text()), path.name
    metrics = {name for file, name in SHOWN if file.endswith("state_metrics.py")}
    for path in [
        *(ROOT / "deploy/grafana").glob("*.py"),
        *(ROOT / "deploy/prometheus").rglob("*.yml"),
    ]:
        used = set(re.findall(r"hb_\w*(?:bound|_low|_high)\b", path.read_text()))
        assert used <= metrics, path.name
