"""The documentation is a site: it builds strictly, with every link and the Python interface."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the built site, made in a copy so that nothing is left in the tree."""
    copy = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "mkdocs.yml", copy)
    shutil.copytree(ROOT / "docs", copy / "docs")
    for package in ("agents", "learners", "schemas", "settings", "streams"):
        (copy / package).symlink_to(ROOT / package)
    program = Path(sys.executable).with_name("zensical")
    built = subprocess.run(
        [program, "build", "--strict"], cwd=copy, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return copy / "site"


def test_every_page_is_there(site):
    for page in (ROOT / "docs").rglob("*.md"):
        place = page.relative_to(ROOT / "docs").with_suffix(".html")
        if place.name == "README.html":
            place = place.with_name("index.html")
        assert (site / place).exists(), place


def test_the_interface_comes_from_the_docstrings(site):
    page = (site / "api.html").read_text()
    for name in ("Client", "Publisher", "Diagnoses"):
        assert f'id="agents.clients.client.{name}"' in page


def test_a_page_asks_nobody_else_for_anything(site):
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', page.read_text()
        )
        assert not [address for address in loaded if "hedged" not in address], page
