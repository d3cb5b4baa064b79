"""`hb screenshots`: retake the screenshots of the console in the documentation."""

import asyncio
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from cli.output import err


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Development")(screenshots)


def screenshots(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to put the screenshots.")
    ] = Path("docs/images"),
) -> None:
    """Take screenshots of the console while a demo runs (needs chromium; looks best with Inter).

    The demo has its own folder, broker and workers, which are removed afterwards.

    Example: `hb screenshots /tmp/pictures`.
    """
    from cli.console_screenshots import PATIENTS, browser_path, take
    from cli.demo.command import prepare
    from cli.demo.demonstration import Demo
    from cli.demo.folder import DemoFolder

    browser_path()
    with tempfile.TemporaryDirectory(prefix="hb-screenshots-") as scratch:
        place = DemoFolder(Path(scratch) / "demo")
        work = Demo(place, PATIENTS, seed=4, crash=False)
        with work.kept(stay=False), ThreadPoolExecutor(1) as pool:
            _, source, proposed = prepare(place, seed=4)
            running = pool.submit(asyncio.run, work.run(source, proposed))
            for file in take(work, running, folder):
                err.print(f"{file}  {file.stat().st_size / 1024:.0f} KB", highlight=False)
            err.print("hb: waiting for the demo to end", highlight=False)
            running.result()
