"""A settings file for tests of the settings: small, but with something in every section."""

from pathlib import Path

GOOD = """\
# comments stay
version = 1
name = "toy"
labels = ["no", "yes"]
positive = "yes"

[columns]
id = "id"
label = "truth"

[defaults]
horizon = 1000
alpha = 1.5

[defaults.rules.always]
kind = "constant"
label = "yes"

[learners.left]
features = [
    {name = "age", low = 0, high = 100},  # years
    {name = "mass", scale = "zlog", mean = 70.0, std = 12.5},
]

[learners.right]
doubling = 100
features = [
    {name = "dose", scale = "quantile", knots = [0.0, 1.0, 5.0]},
    {name = "sex", categories = ["f", "m"]},
]

[learners.right.rules.learned]
kind = "logistic"
rate = 0.1

[ensemble]
mode = "ah"
label_ttl = "7d"

[topics]
partitions = 2
"""


def write(folder: Path, text: str = GOOD, name: str = "ensemble.toml") -> Path:
    """Write a settings file."""
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file
