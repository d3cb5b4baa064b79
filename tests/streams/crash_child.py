"""A process that works until it has come to one step of its third commit, and there kills itself.

python crash_child.py ADDRESS PREFIX FOLDER STEP
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from streams.engine.tasks.commit import Step
from tests.streams.engine_kit import config, running, spec

COMMITS = 2


async def main(address: str, prefix: str, folder: str, number: str) -> None:
    fatal, commits = Step(int(number)), 0

    async def die(step: Step) -> None:
        nonlocal commits
        if step is fatal and commits == COMMITS:
            os.kill(os.getpid(), signal.SIGKILL)
        commits += step is Step.DONE

    conf = config(address, prefix, Path(folder), max_records=100, chunk_records=50)
    async with running(conf, spec(prefix), hook=die):
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
