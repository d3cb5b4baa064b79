"""Help texts: every command has one, and flags are shown by their names alone."""

import pytest
from typer.main import get_command

from cli.main import app
from tests.cli_runs import Hb


def commands(command, path=()):
    """Yield the words of every command, groups included."""
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*path, name))


EVERY = {path: command for path, command in commands(get_command(app)) if not command.hidden}


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_command_explains_itself(path, monkeypatch, capsys):
    if path == ("test",):
        return  # pytest gets all its options, --help too
    run = Hb(monkeypatch, capsys)(*path, "--help")
    assert run.code == 0
    assert "<bool>" not in run.out
    assert len(EVERY[path].help or "") > 10, "a sentence says what it does"
    for option in EVERY[path].params:
        assert getattr(option, "help", None), f"{option.name} has no help"


def test_verbose_and_quiet_exclude_each_other(monkeypatch, capsys):
    run = Hb(monkeypatch, capsys)("worker", "--verbose", "--quiet")
    assert run.code == 2
    assert "exclude each other" in run.err
