"""`hb up` and `hb status` with several ensembles: they start, end and are seen together."""

import json
import signal
import subprocess

import pytest
from test_supervision import Up, alive, until
from user_kit import HB, ensemble

from agents.worker_pages import worker_pages

WITHIN = 120.0


def run(*arguments):
    return subprocess.run(
        [*HB, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=WITHIN
    )


@pytest.fixture
def files(tmp_path, broker_address, prefix):
    paths = []
    for name in ("heart", "lung"):
        (folder := tmp_path / name).mkdir()
        whole = f"{prefix.strip('.')}-{name}"
        paths.append(ensemble(folder, broker_address, whole, partitions=1))
    return paths


def test_two_ensembles_live_and_end_together(files):
    up = Up(*files)
    try:
        until(lambda: sorted(len(worker_pages(f.parent / "state")) for f in files) == [3, 3], up)
        workers = up.workers()
        assert len(workers) == 6
        until(lambda: run("status", *files).returncode == 0, up)
        report = json.loads(run("status", *files, "--json").stdout)["ensembles"]
        assert [entry["file"] for entry in report] == [str(file) for file in files]
        assert all(len(entry["workers"]) == 3 for entry in report)
        shown = run("status", *files).stdout
        assert all(entry["name"] in shown for entry in report)
        up.process.send_signal(signal.SIGTERM)
        assert up.process.wait(60) == 0
        assert not [worker for worker in workers if alive(worker)]
    finally:
        up.end()


def test_a_folder_of_settings_files_is_shown_at_once(files, tmp_path):
    (tmp_path / "other.toml").write_text("title = 'something else'")
    for file in files:
        (tmp_path / f"{file.parent.name}.toml").write_text(file.read_text())
    report = json.loads(run("status", "--all", "--settings", tmp_path / "x.toml", "--json").stdout)
    assert [entry["file"] for entry in report["ensembles"]] == [
        str(tmp_path / "heart.toml"),
        str(tmp_path / "lung.toml"),
    ]


def test_ensembles_that_would_share_something_do_not_start(files):
    refused = run("up", files[0], files[0])
    assert (refused.returncode, "given twice" in refused.stderr) == (3, True)
    files[1].write_text(files[0].read_text())
    refused = run("up", *files)
    assert refused.returncode == 3
    assert "both call their ensemble" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) <= 2, refused.stderr
