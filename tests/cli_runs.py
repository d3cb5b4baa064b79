"""Runs `hb` inside the test process, as a shell would: exit code, standard output and error."""

import sys
from dataclasses import dataclass

import orjson
import pytest

from cli import output
from cli.main import main


@dataclass(frozen=True)
class Run:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The one object on standard output."""
        return orjson.loads(self.out)


class Hb:
    """Calls `hb` with arguments."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        # Wide enough for every table, whatever the width of the terminal that the tests run in.
        for console in (output.out, output.err):
            monkeypatch.setattr(console, "width", 200)

    def __call__(self, *arguments: object) -> Run:
        """Run `hb ARGUMENTS`."""
        self._monkeypatch.setattr(sys, "argv", ["hb", *map(str, arguments)])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        written = self._capsys.readouterr()
        return Run(int(ended.value.code or 0), written.out, written.err)
