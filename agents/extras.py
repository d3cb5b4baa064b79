"""What the installed distribution can do: its extras, and the packages that each of them brings.

Read from the distribution's metadata with the standard library alone, because the base install, the
client, has to be able to say what it lacks.
"""

import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, requires

DISTRIBUTION = "hedged-bandits"
_EXTRA = re.compile(r"""extra == ['"]([\w-]+)['"]""")
_NAME = re.compile(r"[\w.-]+")
_MODULES = {"faust": "faust-streaming", "mode": "faust-streaming", "sklearn": "scikit-learn"}
"""Modules that are called otherwise than the package that brings them."""


def requirements() -> Mapping[str, list[str]]:
    """Return what each extra requires beyond the base; "" is the base."""
    packages: dict[str, list[str]] = {}
    for text in _required():
        extra = _EXTRA.search(text)
        packages.setdefault(extra[1] if extra else "", []).append(text)
    return packages


def advice(error: ModuleNotFoundError) -> str:
    """Say which package is missing here, and the smallest extra that brings it."""
    module = (error.name or "").partition(".")[0]
    package = _MODULES.get(module, module.replace("_", "-"))
    sentence = f"this needs the Python package {package}, which is not installed here"
    bringing = {
        extra: len(texts)
        for extra, texts in requirements().items()
        if extra and package in map(_name, texts)
    }
    if not bringing:
        return sentence
    return f"{sentence}: pip install '{DISTRIBUTION}[{min(bringing, key=bringing.__getitem__)}]'"


def _required() -> list[str]:
    try:
        return requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return []


def _name(requirement: str) -> str:
    name = _NAME.match(requirement)
    return name[0].lower() if name else ""
