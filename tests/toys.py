"""Small settings files that tests share."""

from pathlib import Path

from settings.loading import load_settings
from settings.model import Settings

TOY = """
version = 1
name = "toy"
labels = ["benign", "malignant"]
positive = "malignant"

[defaults]
alpha = 1.65
lipschitz = 0.01

[defaults.rules.benign]
kind = "constant"
label = "benign"

[defaults.rules.malignant]
kind = "constant"
label = "malignant"

[learners.a]
horizon = 100000
cuts = 1
features = [
    { name = "x", scale = "minmax", low = 0.0, high = 1.0 },
    { name = "y", scale = "minmax", low = 0.0, high = 1.0 },
]

[learners.b]
doubling = 1000
features = [
    { name = "z", scale = "zlog", mean = 0.0, std = 1.0 },
    { name = "s", categories = ["f", "m"] },
]
"""


def toy_file(folder: Path, text: str = TOY) -> Path:
    """Write a settings file into `folder`."""
    file = folder / "ensemble.toml"
    file.write_text(text)
    return file


def toy(folder: Path, *overrides: str, text: str = TOY) -> Settings:
    """Return the settings of a toy ensemble."""
    return load_settings(toy_file(folder, text), overrides)
