"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the tree."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = dict(
    re.findall(r"^### (Add .*?)\n(.*?)(?=^### Add |^## )", PAGE, flags=re.MULTILINE | re.DOTALL)
)
STEP = re.compile(r"(?:^([^\n`*]+[`*][^\n]*):\n\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CREATE = re.compile(r"Create \*\*([\w./]+)\*\*")
INSERT = re.compile(r"In `([\w./]+)`, after `([^`]+)`")
APPEND = re.compile(r"At the end of `([\w./]+)`")
HB = "from cli.main import main; main()"


@pytest.fixture
def clone(tmp_path):
    """Return a copy of all files that git knows, and of new ones."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    for name in listed:
        if (ROOT / name).is_file() and not name.startswith(("docs/results/", "docs/images/")):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name)
    return tmp_path


def apply(clone, sentence, block):
    """Do what a sentence says with the block below it; return the path if it is a new file."""
    if created := CREATE.fullmatch(sentence):
        path = clone / created[1]
        assert not path.exists(), path
        path.write_text(block)
        return path
    if appended := APPEND.fullmatch(sentence):
        path = clone / appended[1]
        path.write_text(path.read_text() + block)
        return None
    inserted = INSERT.fullmatch(sentence)
    assert inserted, f"no instruction: {sentence}"
    path, line = clone / inserted[1], inserted[2]
    lines = path.read_text().splitlines(keepends=True)
    assert lines.count(line + "\n") == 1, f"{inserted[1]} must have this line once: {line}"
    lines.insert(lines.index(line + "\n") + 1, block)
    path.write_text("".join(lines))
    return None


def run(clone, command):
    """Run a line of a recipe with this Python: `./hb` would set up an environment of its own."""
    words, _, target = command.partition(" > ")
    arguments = shlex.split(words)
    assert arguments[0] == "./hb"
    program = ["-c", HB, *arguments[1:]]
    if arguments[1] == "test":
        program = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments[2:]]
    process = subprocess.run(
        [sys.executable, *program], cwd=clone, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout + process.stderr
    if target:
        (clone / target).write_text(process.stdout)


def lint(clone, files):
    for step in (["check"], ["format", "--check"]):
        ruff = Path(sys.executable).parent / "ruff"
        process = subprocess.run(
            [ruff, *step, *files], cwd=clone, capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, process.stdout


def test_there_are_three_recipes():
    assert list(RECIPES) == [
        "Add a rule",
        "Add a fusion mode",
        "Add a metric with its panel and alert",
    ]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_does_what_it_says(clone, name):
    steps = STEP.findall(RECIPES[name])
    commands = [line for _, kind, block in steps if kind == "sh" for line in block.splitlines()]
    edits = [(sentence, block) for sentence, kind, block in steps if kind != "sh"]
    assert len(edits) > 3
    assert len(commands) == 2
    new = [apply(clone, *edit) for edit in edits]
    for command in commands:
        run(clone, command)
    lint(clone, [path for path in new if path] or ["agents", "deploy"])
