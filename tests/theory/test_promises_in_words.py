"""What texts say of bounds is as true as what figures show.

Two nets over docs, help, templates, pages and docstrings. A paragraph that gives the formula of
Theorem 2 or 4, or names them to users, says what late labels do to it. And each text for users
that names a theorem, nats or a level of confidence is listed with what it is about: a new one
fails until it is looked at.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = "agents audit cli deploy docs experiments learners schemas settings streams"
KINDS = {".py", ".md", ".js", ".html", ".toml", ".yml"}
TEXTS = sorted(
    path
    for path in [
        *ROOT.glob("*.md"),
        *(p for room in ROOMS.split() for p in (ROOT / room).rglob("*")),
    ]
    if path.suffix in KINDS and not path.is_relative_to(ROOT / "docs" / "results")
)
INSIDE = (
    "experiments/",
    "learners/local/",
    "learners/theory/",
    "learners/rules/",
    "learners/fusion/",
)
"""Where theorems are named for those who read the code."""


def name(path):
    return path.relative_to(ROOT).as_posix()


def paragraphs(path):
    """Yield what is read as one: a paragraph, or a row of a table, or an item of a list."""
    for block in re.split(r"\n\s*\n", path.read_text()):
        if path.suffix == ".md":
            yield from re.split(r"\n(?=[-|] ?)", block)
        else:
            yield block


def test_whoever_gives_hedges_bound_says_what_late_labels_do_to_it():
    formula, named = re.compile(r"sqrt\(T(?= |\))"), re.compile(r"Theorems? (?:1 to 4|2|4)\b")
    for path in TEXTS:
        inside = name(path).startswith(INSIDE)
        for text in paragraphs(path):
            if formula.search(text) or (named.search(text) and not inside):
                assert re.search(r"\blate\b|on time|delay", text), (name(path), text)


SAID = {
    "CHANGELOG.md": "what was promised and is no more, the mixture",
    "README.md": "a bootstrap over patients, as measured",
    "agents/monitor/console/static/panel.js": "share_interval",
    "agents/monitor/scores.py": "says why Theorem 1 is not shown",
    "agents/monitor/state_metrics.py": "share_interval",
    "cli/plan.py": "plan_bounds, which asks",
    "deploy/grafana/learners.py": "hb_accuracy_low and hb_accuracy_high",
    "deploy/grafana/pipeline.py": "a quantile of seconds, no promise",
    "docs/choosing.md": "regret_bound, log_loss_bound, planned_local_bound, interval_holds",
    "docs/confidence.md": "share_interval",
    "docs/console.md": "window_interval",
    "docs/decisions/2026-11-16-confidence-interval.md": "interval_holds",
    "docs/decisions/2026-11-19-index-for-one-over-t.md": "planned_confidence",
    "docs/guarantees.md": "names the tests",
    "docs/join.md": "what corrected labels do to promises",
    "docs/metrics.md": "share_interval",
    "docs/records.md": "confidence",
    "docs/settings.md": "log_loss_bound",
    "docs/theory.md": "has the proofs",
    "learners/fusion/registry.py": "log_loss_bound",
    "schemas/records.py": "confidence",
    "settings/proposing/proposal.py": "planned_regret_bound",
}
"""Each text that names a theorem, nats or a level of confidence: what of the promises it tells."""


def test_every_text_that_promises_is_listed():
    promise = re.compile(r"Theorem|Corollary|\bnats\b|95 ?%|95 percent")
    found = {
        name(path)
        for path in TEXTS
        if promise.search(path.read_text())
        and (not name(path).startswith(INSIDE) or path.name == "registry.py")
    }
    assert found == SAID.keys(), "is it true, and for late and corrected labels too?"
