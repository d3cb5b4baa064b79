"""Shares have one number format, wherever people read them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[4]


def test_shares_are_formatted_in_one_place_only():
    """`:.0%` and the like drop the blank, and some round to certainty."""
    own = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in ("cli", "settings", "audit", "agents", "learners", "streams")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r":[,.]?\.\d%", line)
    ]
    assert own == [], "use learners/scores/wording.py"
