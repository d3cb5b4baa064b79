"""Help texts: every command has one with examples that work, in words instead of Python types."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from cli.main import app
from tests.cli_runs import Hb

DOCS = Path(__file__).parents[3] / "docs"


def commands(command, path=()):
    """Yield the words of every command, groups included."""
    yield path, command
    for name, part in getattr(command, "commands", {}).items():
        yield from commands(part, (*path, name))


EVERY = {path: command for path, command in commands(get_command(app)) if not command.hidden}
SINGLE = [path for path, command in EVERY.items() if not hasattr(command, "commands")]


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_command_explains_itself(path, monkeypatch, capsys):
    if path == ("test",):
        return  # pytest gets all its options, --help too
    run = Hb(monkeypatch, capsys)(*path, "--help")
    assert run.code == 0
    assert not re.search(r"<(bool|int|float|str|path|list)\b", run.out), "words, not Python types"
    assert not re.search(r"<\w[^>\n]*│", run.out), "no list of choices is cut in two"
    assert "[[" not in run.out, "one pair of brackets says that an argument may be left out"
    assert len(EVERY[path].help or "") > 10, "a sentence says what it does"
    for option in EVERY[path].params:
        assert getattr(option, "help", None), f"{option.name} has no help"


@pytest.mark.parametrize("path", SINGLE, ids=" ".join)
def test_every_command_has_examples_that_can_be_parsed(path):
    quoted = re.findall(r"`([^`]*)`", " ".join((EVERY[path].help or "").split()))
    examples = [shlex.split(text.partition(" > ")[0]) for text in quoted if text.startswith("hb ")]
    own = [words for words in examples if tuple(words[1 : len(path) + 1]) == path]
    assert own, "the help shows how the command is used"
    for words in own:
        if path != ("test",):
            EVERY[path].make_context("hb", words[len(path) + 1 :])


def test_verbose_and_quiet_exclude_each_other(monkeypatch, capsys):
    run = Hb(monkeypatch, capsys)("worker", "--verbose", "--quiet")
    assert run.code == 2
    assert "exclude each other" in run.err


def test_options_that_the_user_guide_promises_for_all_commands_are_there():
    """docs/use.md says which of the commands in its table take `--settings` and `--json`."""
    rows = re.findall(r"^\| `hb (\w+)", (DOCS / "use.md").read_text(), re.MULTILINE)
    options = {name: {o for p in EVERY[name,].params for o in p.opts} for name in set(rows)}
    assert len(options) > 8
    assert {name for name, own in options.items() if "--settings" not in own} <= {"evaluate"}
    assert {name for name, own in options.items() if "--json" not in own} == {"logs"}
