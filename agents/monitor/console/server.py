"""The console's addresses on the worker's web server.

/                   the page
/console/<file>     its files
/events             server-sent events
/learner/<name>     one learner in detail
/diagnosis/<token>  one diagnosis in detail, with its label once that has come
/viewers            how many pages are open
"""

import asyncio
import contextlib
import logging
from collections import Counter
from typing import Any

from aiohttp import web

from agents.monitor.console.access import HEADERS
from agents.monitor.console.assets import CHARTS, PAGE, Asset, assets, charts
from agents.monitor.console.console import Console
from agents.monitor.watch import Watch
from settings.errors import HbError
from settings.model import Settings
from streams.faust.app import EngineApp

PAGES_PER_CLIENT = 100
_STALLED = 30.0
"""Seconds after which a page that no longer reads is dropped."""
_GRACE = 0.5
CONSOLE = web.AppKey("console", Console)
_log = logging.getLogger(__name__)


def install(app: EngineApp, settings: Settings, watch: Watch) -> None:
    """Add the console to a worker that has not started yet."""
    server: Any = app.web
    add_pages(
        server.web_app, Console(settings, watch, app.engine.statuses, app.engine.symptoms), settings
    )


def add_pages(site: web.Application, console: Console, settings: Settings) -> None:
    """Add a console to a web server; it starts and ends with the server."""
    pages = Pages(console, settings)
    site[CONSOLE] = console
    site.router.add_get("/", pages.page)
    site.router.add_get("/console/{file}", pages.file)
    site.router.add_get("/events", pages.events)
    site.router.add_get("/learner/{name}", pages.learner)
    site.router.add_get("/viewers", pages.viewers)
    site.router.add_get("/diagnosis/{token}", pages.diagnosis)

    async def start(_: web.Application) -> None:
        console.start()

    async def close(_: web.Application) -> None:
        await console.close()
        await pages.drop_stalled()

    site.on_startup.append(start)
    site.on_shutdown.append(close)


class Pages:
    """The handlers."""

    def __init__(self, console: Console, settings: Settings) -> None:
        self._console, self._settings = console, settings
        self._open: Counter[str | None] = Counter()
        self._streams: set[asyncio.Task[Any]] = set()

    async def page(self, request: web.Request) -> web.StreamResponse:
        """Send the page."""
        return _sent(request, (await asyncio.to_thread(assets))[PAGE])

    async def file(self, request: web.Request) -> web.StreamResponse:
        """Send a file of the page."""
        name = request.match_info["file"]
        if name == CHARTS:
            return _sent(request, await asyncio.to_thread(charts))
        asset = (await asyncio.to_thread(assets)).get(name)
        if asset is None:
            return web.Response(status=404, text="no such file\n", headers=HEADERS)
        return _sent(request, asset)

    async def learner(self, request: web.Request) -> web.StreamResponse:
        """Send a learner's cubes and rules."""
        name = request.match_info["name"]
        if name not in self._settings.learners:
            return _problem(404, "no such learner")
        try:
            body = await self._console.learners.of(name)
        except HbError as error:
            return _problem(503, str(error))
        return _json(body)

    async def diagnosis(self, request: web.Request) -> web.StreamResponse:
        """Send a diagnosis and its label."""
        try:
            body = await self._console.diagnoses.of(request.match_info["token"])
        except HbError as error:
            return _problem(503, str(error))
        if body is None:
            return _problem(
                404, "this diagnosis is no longer among the latest; see hb diagnosis ID"
            )
        return _json(body)

    async def viewers(self, _: web.Request) -> web.StreamResponse:
        """Say how many pages are open: `hb demo` waits for their readers."""
        count = {"open": len(self._streams)}
        return web.json_response(count, headers={**HEADERS, "Cache-Control": "no-store"})

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Send frames until the page, or the worker, goes away."""
        events = self._console.events
        if events.closed:
            return _problem(503, "the worker is stopping")
        if events.full or self._open[request.remote] >= PAGES_PER_CLIENT:
            return _problem(503, "too many pages are open")
        stream = web.StreamResponse(
            headers={
                **HEADERS,
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",
            }
        )
        await stream.prepare(request)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - handlers run as tasks
        self._streams.add(task)
        self._open[request.remote] += 1
        try:
            await self._follow(stream)
        except (ConnectionError, TimeoutError) as error:
            _log.debug("a page disconnected: %s", type(error).__name__)
        finally:
            self._streams.discard(task)
            self._open[request.remote] -= 1
            self._open += Counter()  # drops clients without an open page
        return stream

    async def _follow(self, stream: web.StreamResponse) -> None:
        async with contextlib.aclosing(self._console.events.frames()) as frames:
            await _write(stream, b"retry: 1000\n\n" + self._console.hello())
            async for frame in frames:
                await _write(stream, frame)

    async def drop_stalled(self) -> None:
        """Drop pages that no longer read: a worker that stops does not wait for them."""
        _, stalled = (
            await asyncio.wait(self._streams, timeout=_GRACE) if self._streams else ((), ())
        )
        for stream in stalled:
            stream.cancel()


async def _write(stream: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(_STALLED):
        await stream.write(data)


def _json(body: bytes) -> web.Response:
    headers = {**HEADERS, "Cache-Control": "no-store"}
    return web.Response(body=body, content_type="application/json", headers=headers)


def _problem(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status, headers=HEADERS)


def _sent(request: web.Request, asset: Asset) -> web.Response:
    headers = {**HEADERS, "Cache-Control": asset.cache, "Vary": "Accept-Encoding"}
    tag = f'"{asset.tag}"'
    headers["ETag"] = tag
    tags = request.headers.get("If-None-Match", "")
    if tag in (listed.strip() for listed in tags.split(",")):
        return web.Response(status=304, headers=headers)
    headers["Content-Type"] = asset.kind
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return web.Response(body=asset.packed, headers=headers)
    return web.Response(body=asset.body, headers=headers)
