"""The fault benchmark itself: what it starts ends with it."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bench.faults.fault_plan import Plan
from bench.faults.injection import FaultInjection
from settings.errors import HbError

ROOT = Path(__file__).parents[3]
PROGRAM = """
import asyncio, sys
from pathlib import Path
from bench.faults import fault_plan
from bench.faults.injection import FaultInjection
from cli import bench, main

folder = Path(sys.argv.pop())

async def run():
    # The workers are stand-ins: no broker is needed to see whether they end.
    sleep = lambda *_: [sys.executable, "-c", "import time; time.sleep(600)"]
    injection = FaultInjection(None, fault_plan.SHORT, folder, print, sleep)
    async with injection.running(1):
        print("started", flush=True)
        await asyncio.sleep(600)

bench.group.command("stand-in")(lambda: asyncio.run(run()))
sys.argv[1:1] = ["bench", "stand-in"]
main.main()
"""


def test_sigterm_ends_the_workers_too(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout.readline() == "started\n"
        workers = psutil.Process(run.pid).children()
        assert len(workers) == 2
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 130
    try:
        assert not any(worker.is_running() for worker in workers)
    finally:
        for worker in workers:
            if worker.is_running():
                worker.kill()


async def test_what_fails_in_tasks_of_tasks_is_one_sentence(tmp_path):
    injection = FaultInjection(None, Plan(records=0, kills=0, workers=0), tmp_path, print, None)

    async def fail():
        raise HbError("no diagnosis")

    async def within():
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())

    with pytest.raises(HbError, match=r"^no diagnosis$"):
        async with injection.running(1), asyncio.TaskGroup() as group:
            group.create_task(within())
