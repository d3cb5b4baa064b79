"""`hb console`: open the live page of the ensemble."""

import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import JsonOption, out, print_json
from cli.settings import SetOption, SettingsOption, load
from settings.errors import InputError

if TYPE_CHECKING:
    from settings.model import Settings

_TEXT = ("www-browser", "links", "elinks", "lynx", "w3m")
"""Browsers inside the terminal: they would take it over, and show no charts."""


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Running")(console)


def console(
    *,
    address: Annotated[
        bool, typer.Option("--address", help="Only print the address; open nothing.")
    ] = False,
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Open the live console in a browser, or print its address if there is no browser.

    A worker must be running on this machine (`hb up`, `hb demo --keep`); any worker shows the whole
    system.

    Examples: `hb console`, `hb console --address`.
    """
    page = page_address(load(settings, set_))
    if json:
        print_json({"address": page})
        return
    if not address and opened(page):
        out.print(f"opened {page}", markup=False, highlight=False, soft_wrap=True)
        return
    out.print(page, markup=False, highlight=False, soft_wrap=True)


def page_address(settings: "Settings") -> str:
    """Return the address of the console on this machine; InputError if no worker serves one."""
    from agents.worker_pages import worker_pages

    pages = [page for page in worker_pages(settings.worker.state) if page.console]
    if not pages:
        raise InputError(
            "no worker of this ensemble serves a console on this machine; start them with: hb up"
        )
    return pages[0].address


def opened(page: str) -> bool:
    """Open a page in the user's browser; False where there is none that shows pages."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    return browser.name not in _TEXT and browser.open(page)
