"""A worker as a separate process: its command line, its log, and how it ends with its parent.

Supervisors, the demo and the benchmarks start it with `command`; `hb worker` calls `serve`. A
supervised worker watches its standard input, a pipe that its parent holds open: the kernel closes
it when the parent ends, even by kill -9.
"""

import argparse
import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agents.worker import Worker
from agents.worker_log import LogStyle, log_to_terminal
from learners.errors import LearnerError
from settings.errors import HbError
from settings.loading import load_settings
from settings.model import Settings
from streams.engine.state.private import UMASK

try:
    from uvloop import run
except ImportError:  # not available on this system
    from asyncio import run  # type: ignore[assignment]  # it takes fewer arguments

STOP_WITHIN = 15.0
"""Seconds that a worker gets to commit and leave its group before it is killed."""
_log = logging.getLogger(__name__)


def command(
    settings_file: str | Path,
    overrides: Sequence[str] = (),
    roles: Sequence[str] = (),
    *,
    supervised: bool = False,
    log: LogStyle | None = None,
) -> list[str]:
    """Return the command that starts a worker with this Python; all roles if none is named."""
    style = log or LogStyle()
    sets = [part for override in overrides for part in ("--set", override)]
    played = [part for role in roles for part in ("--role", role)]
    flag = ["--supervised"] if supervised else []
    start = [sys.executable, "-m", __name__, "--settings", str(settings_file)]
    return [*start, *sets, *played, *flag, *style.arguments()]


def serve(
    settings: Settings,
    roles: Sequence[str] = (),
    *,
    supervised: bool = False,
    log: LogStyle | None = None,
) -> None:
    """Run a worker until it is told to stop; raise WorkerError if it crashes."""
    log_to_terminal(",".join(roles) or "worker", log or LogStyle())
    os.umask(UMASK)
    run(_work(Worker(settings, roles), supervised))


async def _work(worker: Worker, supervised: bool) -> None:
    if supervised:
        loop = asyncio.get_running_loop()
        end_with_parent(lambda: loop.call_soon_threadsafe(worker.stop))
    await worker.run()


def end_with_parent(stop: Callable[[], object]) -> None:
    """Call `stop` when standard input closes; end the process if that does not help in time."""

    def watch() -> None:
        while os.read(0, 1024):
            pass
        _log.warning("the supervisor has exited; stopping")
        stop()
        time.sleep(STOP_WITHIN)
        os._exit(1)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a worker from its command line."""
    parser = argparse.ArgumentParser(description="A worker; people use `hb worker`.")
    parser.add_argument("--settings", required=True, type=Path)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--role", action="append", default=[], dest="roles")
    parser.add_argument("--supervised", action="store_true", help="end when standard input closes")
    parser.add_argument("--log-format", choices=("text", "json"), default="text")
    parser.add_argument("--log-detail", choices=("quiet", "normal", "verbose"), default="normal")
    options = parser.parse_args(arguments)
    try:
        settings = load_settings(options.settings, options.overrides)
        style = LogStyle(options.log_format, options.log_detail)
        serve(settings, options.roles, supervised=options.supervised, log=style)
    except HbError as error:
        sys.stderr.write(f"hb: {error}\n")
        sys.exit(error.exit_code)
    except LearnerError as error:
        sys.stderr.write(f"hb: {error}\n")
        sys.exit(3)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
