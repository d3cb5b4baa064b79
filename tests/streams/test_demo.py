"""`hb demo` as a person runs it: a process of its own, on a broker of its own."""

import os
import re
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import orjson
import psutil
import pytest
from user_kit import HB

FIGURES = {"patients", "PER", "FPR", "FNR", "weights", "regret", "bound"}


@pytest.fixture
def home(tmp_path):
    """An environment whose demo lives in this test's folder."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("HB_SET")}
    env["XDG_DATA_HOME"] = str(tmp_path)
    yield env
    clean = until(lambda: not left_over(tmp_path))
    hb(env, "demo", "--stop")
    assert clean, "a demo leaves nothing behind"


def left_over(folder: Path) -> list[object]:
    """Return the demo's folder, if it is there, and every process that names it."""
    named = [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(str(folder) in part for part in process.info["cmdline"] or ())
    ]
    return [*named, *(path for path in (folder / "hb/demo",) if path.exists())]


def until(holds, seconds=120):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def hb(env, *arguments, timeout=240):
    return subprocess.run(
        [*HB, *arguments], env=env, capture_output=True, text=True, timeout=timeout, check=False
    )


def test_a_secure_demo_that_is_kept_can_be_used_and_stopped(home, tmp_path):
    """On a secure broker; the newcomer's walk (`test_walks.py`) is the plain one."""
    run = hb(home, "demo", "--patients", "60", "--secure", "--keep", "--json")
    assert run.returncode == 0, run.stderr
    report = orjson.loads(run.stdout)
    figures = report["figures"]
    assert figures.keys() >= FIGURES
    assert figures["patients"] == 60
    assert 0 <= figures["PER"] < 50
    assert sum(figures["weights"].values()) == pytest.approx(1, abs=1e-6)
    assert figures["weights"].keys() == {"ll1", "ll2", "ll3"}
    assert 0 <= figures["regret"] <= figures["bound"]
    assert figures["bound"] >= 16.237  # Theorem 2's, were no label late
    assert "60 of 60 diagnosed, 60 labels learned" in run.stderr
    assert figures["referred_at_first"] >= 10
    assert figures["worker_killed_and_back_after_seconds"] > 0
    (console,) = re.findall(r"hb: console at (http://\S+)", run.stderr)
    with urllib.request.urlopen(console) as page:
        assert b"<title>hb console</title>" in page.read()
    assert "A recount of every figure" in report["story"][-1]

    settings = str(tmp_path / "hb/demo/ensemble.toml")
    status = hb(home, "status", "--settings", settings, "--json")
    assert status.returncode == 0, status.stderr
    live = orjson.loads(status.stdout)
    assert live["labelled"] == 60
    assert 100 * live["rates"]["ensemble"]["per"] == pytest.approx(figures["PER"])
    assert live["lag"] == 0
    again = hb(home, "demo")
    assert again.returncode == 3
    assert "a demo is already running" in again.stderr
    stopped = hb(home, "demo", "--stop", "--json")
    assert orjson.loads(stopped.stdout) == {"was_running": True}
    assert left_over(tmp_path) == []
    assert hb(home, "demo", "--stop").stdout == "no demo was running\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_demo_that_is_ended_cleans_up(home, tmp_path, number):
    process = subprocess.Popen([*HB, "demo"], env=home, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "diagnosed" in line:
            break
    assert len(left_over(tmp_path)) >= 4, "folder, broker, keeper, workers"
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)
