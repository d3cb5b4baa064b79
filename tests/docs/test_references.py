"""What the documentation names exists: files, folders, functions in them, tests, and links."""

import ast
import re
from pathlib import Path

import pytest

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
