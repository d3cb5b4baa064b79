"""Format, lint, types and import direction: what `hb check` runs beside the tests."""

import subprocess
import sys
from pathlib import Path

import pytest

from cli import dev
from cli.dev import CHECKS

ROOT = Path(__file__).parents[2]


@pytest.mark.checks
@pytest.mark.parametrize("name", CHECKS)
def test_check(name):
    program, *arguments = CHECKS[name]
    process = subprocess.run(
        [Path(sys.executable).parent / program, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr


def test_python_keeps_what_it_compiles_for_the_tests(monkeypatch, capfd):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert dev._passes("cache", ["python", "-c", "import sys; print(sys.dont_write_bytecode)"])
    assert capfd.readouterr().out == "False\n"


def test_signals_for_hb_test_reach_pytest(tmp_path):
    file = tmp_path / "test_pid.py"
    body = "open(PID, 'w').write(str(os.getpid()))".replace("PID", repr(str(tmp_path / "pid")))
    file.write_text(f"import os\n\n\ndef test_pid():\n    {body}\n")
    hb = Path(sys.executable).parent / "hb"
    with subprocess.Popen([hb, "test", "-q", file], stdout=subprocess.DEVNULL) as process:
        assert process.wait() == 0
    assert (tmp_path / "pid").read_text() == str(process.pid)
