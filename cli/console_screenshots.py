"""Screenshots of the console for the documentation: of a real system while it runs.

A demonstration runs in the background; a headless browser has the console open in every variant
from the start, so that the curves are complete, and takes the screenshots when most patients have
come.
"""

import shutil
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cli.demo.demonstration import COMING, Demo
from settings.errors import InputError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENTS = 1200
_SHARE = 0.5
"""The share of patients diagnosed when the screenshots are taken."""
_PATIENCE_MS = 300_000
"""A busy machine is no reason to give up."""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True)
class Shot:
    """One screenshot: window size, theme, device pixels per CSS pixel."""

    width: int
    height: int
    theme: Literal["light", "dark"]
    scale: float = 1.0


SHOTS: Mapping[str, Shot] = {
    "light": Shot(1280, 1500, "light"),
    "dark": Shot(1280, 1500, "dark"),
    "wide": Shot(1920, 1400, "light"),
    "phone": Shot(360, 1240, "light", 1.5),
}


def browser_path() -> str:
    """Return the browser of this machine; InputError if there is none."""
    path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if path is None:
        raise InputError("chromium is not installed: apt install chromium")
    return path


def take(work: Demo, running: "Future[Any]", folder: Path) -> list[Path]:
    """Take all screenshots of a demonstration that `running` carries out; return the files."""
    progress = work.progress
    ready = threading.Event()
    work.may_begin = ready.is_set
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        raise InputError(
            "playwright is not installed; run ./hb screenshots, which installs it"
        ) from None
    path = browser_path()
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        _until(lambda: progress.step == COMING, running)
        pages = {name: _open(browser, shot, progress.page) for name, shot in SHOTS.items()}
        ready.set()
        _until(lambda: len(progress.diagnoses) >= _SHARE * progress.total, running)
        return [_picture(page, folder / f"console-{name}.png") for name, page in pages.items()]


def _until(holds: Callable[[], bool], running: "Future[Any]") -> None:
    while not holds():
        if running.done():
            running.result()
            raise InputError("the demonstration ended before the screenshots were taken")
        time.sleep(0.05)


def _open(browser: "Browser", shot: Shot, address: str) -> "Page":
    page = browser.new_page(
        viewport={"width": shot.width, "height": shot.height},
        color_scheme=shot.theme,
        device_scale_factor=shot.scale,
    )
    page.set_default_timeout(_PATIENCE_MS)
    page.goto(address)
    page.locator('body[data-link="live"]').wait_for()
    return page


def _picture(page: "Page", file: Path) -> Path:
    page.screenshot(path=file)
    return file
