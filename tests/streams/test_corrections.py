"""Labels corrected on a real broker, a worker killed meanwhile: each correction counts once."""

import signal
import subprocess
import time

from user_kit import ensemble, worker_process

from agents.worker_process import command
from tests.cli_runs import Hb

N, AMENDED, WITHDRAWN, AGAIN = 60, 20, 8, 3
PATIENCE = 240.0


def until(look, ready):
    """Wait for a state; return it."""
    deadline = time.monotonic() + PATIENCE
    while not ready(state := look()):
        assert time.monotonic() < deadline, state
        time.sleep(0.3)
    return state


def killed_worker(file):
    """Start a worker, and return it once it runs."""
    process = subprocess.Popen(
        command(file), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=file.parent
    )
    assert any("worker runs" in line for line in process.stdout)
    return process


def test_corrections_count_once_whatever_happens_to_the_worker(
    tmp_path, broker_address, prefix, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    file, hb = ensemble(tmp_path, broker_address, prefix.strip(".")), Hb(monkeypatch, capsys)
    header = "patient,radius,texture,age,site,truth"
    rows = [f"v{k},{k % 30},{k % 40},{k % 100},left,benign" for k in range(N)]
    (tmp_path / "patients.csv").write_text("\n".join([header, *rows]) + "\n")
    amended = [f"v{k},malignant" for k in range(AMENDED)]
    (tmp_path / "amended.csv").write_text("\n".join(["patient,truth", *amended]) + "\n")

    def status():
        return hb("status", "--json").json

    doomed = killed_worker(file)
    assert hb("produce", "patients.csv", "--json").json["labels"] == N
    until(status, lambda report: report["labelled"] == N)
    assert hb("label", "--amend", "--file", "amended.csv").code == 0
    doomed.send_signal(signal.SIGKILL)
    doomed.communicate()
    withdrawn = [part for k in range(WITHDRAWN) for part in ("--withdraw", f"v{k}")]
    assert hb("label", *withdrawn, "--json").json["withdrawn"] == WITHDRAWN
    assert hb("label", *[f"v{k}=benign" for k in range(AGAIN)]).code == 0
    with worker_process(file):
        report = until(status, lambda state: state["lag"] == 0 and state["workers"])
        assert report["labelled"] == N - WITHDRAWN + AGAIN
        assert report["corrections"] == {
            "amended": AMENDED + AGAIN,
            "withdrawn": WITHDRAWN,
            "unlearned": AMENDED - AGAIN,
            "amendable": N,
        }
        audited = hb("audit", "--json")
        assert audited.code == 0, audited.out
        assert audited.json["figures"]["corrections"] == 2 * (AMENDED + WITHDRAWN + AGAIN)
        assert "labels amended" in hb("status").out
        assert hb("replay", "--json").json["figures"]["live"]["labelled"] == report["labelled"]
