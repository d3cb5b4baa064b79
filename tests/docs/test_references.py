"""What the documentation names exists: files, folders, functions in them, tests, and links."""

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.inline_pipeline import Inline, configured

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    if "results" not in page.parts
)
ROOMS = "agents audit bench cli deploy docs experiments learners requirements schemas settings"
PLACE = re.compile(
    rf"`((?:{'|'.join([*ROOMS.split(), 'streams', 'tests'])})/[\w./-]*)(?:::?([\w.]+))?`"
)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def named(page):
    return sorted(set(PLACE.findall(page.read_text())))


def names_in(file):
    """Return every class, function, method and constant that a module defines at its top."""
    names = set()

    def add(body, prefix=""):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                add(node.body, f"{prefix}{node.name}.")
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            names.update(prefix + target.id for target in targets if isinstance(target, ast.Name))

    add(ast.parse(file.read_text()).body)
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_functions_that_a_page_names_exist(page):
    for path, name in named(page):
        place = ROOT / path
        assert place.exists(), path
        if name:
            assert name in names_in(place), f"{path}:{name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target, anchor in LINK.findall(page.read_text()):
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), target
        if anchor and place.suffix == ".md":
            assert anchor in anchors(place), f"{target}#{anchor}"


def anchors(page):
    """Return the addresses of a page's headings, as the common renderers make them."""
    headings = re.findall(r"^#+ +(.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_walk_of_a_patient_names_a_file_at_every_step():
    page = (ROOT / "docs" / "architecture.md").read_text()
    steps = re.findall(r"^\d+\. .*$", page, flags=re.MULTILINE)
    assert len(steps) >= 9
    assert all(PLACE.search(step) for step in steps)


HELPERS = (
    "agents/pooling.py", "agents/state_encoding.py", "agents/testing.py", "learners/arrays/",
    "learners/assessment/", "learners/fusion/", "learners/join/", "learners/local/backoff.py",
    "learners/local/scaling.py", "learners/rules/", "learners/scores/", "learners/theory/",
)  # fmt: skip
"""What serves a file that the walk names: its folder's other files, formats, arrays, formulas."""


def test_the_walk_of_a_patient_names_the_files_that_one_passes(tmp_path):
    live, passed = Inline(configured(tmp_path)), set()

    def note(frame, event, _argument):
        passed.add(Path(frame.f_code.co_filename))

    previous = sys.getprofile()
    sys.setprofile(note)
    try:
        live.patient("p1", {"x": 0.1, "y": 0.2, "z": 0.3})
        live.label("p1", "ill")
    finally:
        sys.setprofile(previous)
    ours = {str(file.relative_to(ROOT)) for file in passed if file.is_relative_to(ROOT)}
    walk = (ROOT / "docs" / "architecture.md").read_text()
    steps = [path for path in ours if path.startswith(("agents/", "learners/"))]
    assert len(steps) > 20
    assert [path for path in steps if path not in walk and not path.startswith(HELPERS)] == []
