"""A worker's pages are found through its state folder, while it runs and no longer."""

import orjson
import psutil

from agents.worker_pages import announced, worker_pages


def test_a_worker_is_found_while_it_runs(tmp_path):
    assert worker_pages(tmp_path) == []
    with announced(tmp_path, ["ensemble"], "http://127.0.0.1:6066", console=True):
        (page,) = worker_pages(tmp_path)
        assert (page.agents, page.address, page.console) == (
            ("ensemble",),
            "http://127.0.0.1:6066",
            True,
        )
    assert worker_pages(tmp_path) == []


def test_what_a_dead_worker_or_somebody_else_left_is_passed_over(tmp_path):
    with announced(tmp_path, ["ensemble"], "http://127.0.0.1:6066", console=True):
        folder = tmp_path / "workers"
        (mine,) = folder.glob("*.json")
        other_process = orjson.loads(mine.read_bytes()) | {"born": 1.0}
        (folder / "1.json").write_bytes(orjson.dumps(other_process))
        (folder / "2.json").write_bytes(b"{")
        (folder / "3.json").write_bytes(b'{"pid": 3}')
        (folder / "4.json").write_bytes(b"[]")
        assert [page.pid for page in worker_pages(tmp_path)] == [psutil.Process().pid]
