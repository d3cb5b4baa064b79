"""The runbook as a page of every worker: alerts and dashboards link to it.

It is the same for everybody and tells nothing of this system. So it is served without the token,
and to those who come from the pages of other sites, such as Grafana's.
"""

import re
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from aiohttp import web

from agents.monitor.console.access import HEADERS

PATH = "/runbook"
_MARKS = (
    (r"\[([^\]]*)\]\(([^)]*)\)", r"\1 (\2)"),
    (r"\*\*([^*]+)\*\*", r"<strong>\1</strong>"),
    (r"\*([^*]+)\*", r"<em>\1</em>"),
)


def install(app: Any) -> None:
    """Serve the runbook from an application that has not started yet."""
    add_page(app.web.web_app)


def add_page(site: web.Application) -> None:
    """Serve the runbook from a web server."""
    site.router.add_get(PATH, _page)


async def _page(_: web.Request) -> web.Response:
    return web.Response(text=page(), content_type="text/html", headers=HEADERS)


@cache
def page() -> str:
    """Return the runbook as HTML; each alert's section has the alert's name as its id."""
    text = (files("agents.monitor") / "runbook.md").read_text(encoding="utf-8")
    body = "\n".join(map(_block, text.strip().split("\n\n")))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Runbook</title>'
        f'<meta name="viewport" content="width=device-width"><main>\n{body}\n</main></html>\n'
    )


def _block(text: str) -> str:
    """Return a heading, with the paragraph that follows it at once, or a paragraph.

    >>> _block("### HbX")
    '<h3 id="hbx">HbX</h3>'
    >>> _block("**Do**: run `hb *` & see [times](times.md).")
    '<p><strong>Do</strong>: run <code>hb *</code> &amp; see times (times.md).</p>'
    """
    first, _, rest = text.partition("\n")
    marks, _, title = first.partition(" ")
    if marks in {"#", "##", "###"}:
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
        heading = f'<h{len(marks)} id="{name}">{_inline(title)}</h{len(marks)}>'
        return f"{heading}\n{_block(rest)}" if rest else heading
    return f"<p>{_inline(text)}</p>"


def _inline(text: str) -> str:
    """Return a text with its code, emphasis and links."""
    parts = escape(text, quote=False).split("`")
    parts[1::2] = [f"<code>{code}</code>" for code in parts[1::2]]
    for mark, html in _MARKS:
        parts[::2] = [re.sub(mark, html, prose) for prose in parts[::2]]
    return "".join(parts)
