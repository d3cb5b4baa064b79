"""docs/metrics.md: every metric, as the code describes it, and no other."""

import re
from collections import Counter
from pathlib import Path

from agents.monitor.metrics_page import ALL

PAGE = (Path(__file__).parents[4] / "docs" / "metrics.md").read_text(encoding="utf-8")


def row(spec):
    labels = ", ".join(f"`{label}`" for label in spec.labels) or "none"
    return f"| `{spec.name}` | {spec.kind} | {labels} | {spec.help} |"


def test_every_metric_has_its_row():
    rows = [line for line in PAGE.splitlines() if line.startswith("| `hb_")]
    assert sorted(rows) == sorted(map(row, ALL))


def test_no_name_is_used_twice_or_made_up():
    names = Counter(spec.name for spec in ALL)
    assert set(names.values()) == {1}
    assert set(re.findall(r"\bhb_\w+", PAGE)) <= names.keys()


def test_names_and_help_follow_the_conventions():
    for spec in ALL:
        assert re.fullmatch(r"hb(_[a-z]+)+", spec.name)
        assert spec.name.endswith("_total") == (spec.kind == "counter")
        assert bool(spec.buckets) == (spec.kind == "histogram")
        assert spec.help.endswith(".")
        assert not {"id", "instance", "patient"} & set(spec.labels)
