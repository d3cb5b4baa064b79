"""The disk of the state folder is full: one clear sentence, and recovery when there is room."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.broker.reaper import temporary_broker
from streams.engine.tasks.task import Phase
from tests.conftest import need_tool
from tests.streams.engine_kit import (
    committed,
    config,
    create_topics,
    done,
    ids,
    produce,
    running,
    spec,
    until,
)

SIZE = 3 << 20


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A folder on a file system of a few megabytes.

    Not below pytest's own folders: it could not remove them if this process were killed.
    """
    mount = need_tool("mount", "mount")
    folder = Path(tempfile.mkdtemp(prefix="hb-small-disk-"))
    command = [mount, "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        pytest.skip(f"a small file system needs root: {process.stderr.strip()}")
    yield folder
    subprocess.run([need_tool("umount", "mount"), "-l", str(folder)], check=True)
    folder.rmdir()


def fill_up(folder: Path) -> Path:
    """Leave no byte free."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 10, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return ballast


async def test_a_full_disk_is_named_and_passes(small_disk, prefix):
    with temporary_broker() as broker:
        conf, agent = config(broker.address, prefix, small_disk), spec(prefix)
        await create_topics(broker.address, conf, [agent], prefix + "out")
        await produce(broker.address, prefix + "in", ids(range(100)))
        async with running(conf, agent) as group:
            await until(lambda: done(group, 100))
            ballast = fill_up(small_disk)
            await produce(broker.address, prefix + "in", ids(range(100, 20_000)))
            await until(lambda: group.statuses()[0].phase is Phase.WAITING)
            assert f"the state folder {small_disk}" in group.statuses()[0].reason
            os.truncate(ballast, 0)
            ends = len(await committed(broker.address, prefix + "in"))
            await until(lambda: group.statuses()[0].positions.get(prefix + "in") == ends)
        outputs = await committed(broker.address, prefix + "out")
        assert [r.key for r in outputs] == [b"%d" % n for n in range(20_000)]
