"""What commands that publish print when they end early: what was done, and how to continue."""

import os
import shlex
import signal

import pytest
from typer.main import get_command

from agents.clients.produce import Published
from cli.main import app
from cli.output import EXIT_INTERRUPTED
from cli.publishing import command_again, publish

COMMANDS = get_command(app).commands
GIVEN = [
    "produce p.csv --from 31",
    "produce --dataset wdbc --repeat 3",
    "produce p.csv --pace labels --limit 100 --settings other.toml --set a.b=1 --set c=2",
    "produce p.csv --no-labels --shuffle --seed 0 --json",
    "produce p.csv --rate 0.5 --label-delay exp:5s --missing .5 --wrong .1 --seed 7",
    "produce 'my patients.csv' --subject 'who is it' --skip-bad",
    "teach h.csv --limit 9 --skip-bad --settings other.toml --set a.b=1",
    "teach --from old.toml --json",
]


def parsed(line):
    _, command, *words = ["hb", *shlex.split(line)]
    return COMMANDS[command].make_context(command, words)


@pytest.mark.parametrize("line", GIVEN)
def test_the_command_that_continues_keeps_every_option(line):
    context = parsed(line)
    changed = {"start": 5, "run": "r7"} if context.info_name == "produce" else {}
    again = command_again(context, **changed)
    program, _, rest = again.partition(" ")
    assert program == "hb"
    assert parsed(rest).params == {**context.params, **changed}


def test_settings_from_the_environment_are_named(monkeypatch):
    monkeypatch.setenv("HB_SETTINGS", "ward.toml")
    assert command_again(parsed("teach h.csv")) == "hb teach h.csv --settings ward.toml"


def test_an_option_is_left_out_when_it_is_changed_to_nothing():
    again = command_again(parsed("produce p.csv --seed 3"), start=2, run="r", seed=None)
    assert again == "hb produce p.csv --from 2 --run r"


async def _fails():
    raise OSError("gone")


async def _terminated():
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(
    ("work", "error", "ended"),
    [(_fails, OSError, "stopped"), (_terminated, SystemExit, "interrupted")],
)
def test_however_it_ends_it_is_reported(work, error, ended):
    before, reports = signal.getsignal(signal.SIGTERM), []
    try:
        with pytest.raises(error) as raised:
            publish(Published(patients=3), lambda _: work(), lambda *report: reports.append(report))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert reports == [(ended, None)]
    if error is SystemExit:
        assert raised.value.code == EXIT_INTERRUPTED
