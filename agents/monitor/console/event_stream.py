"""Server-sent events: each frame is built once, and the same bytes go to every open page.

Frames are built only while pages are open. A page that reads slowly skips frames and gets the
newest; nothing is queued for it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable

import orjson

EVERY = 1.0
MOST_PAGES = 500
_log = logging.getLogger(__name__)


def event(kind: str, data: object) -> bytes:
    r"""Return an event as it is sent.

    >>> event("hello", {"n": 1})
    b'event: hello\ndata: {"n":1}\n\n'
    """
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps(data))


class EventStream:
    """Sends frames to pages: `make` builds the next one, `idle` is awaited when no page is open."""

    def __init__(
        self,
        make: Callable[[], Awaitable[bytes]],
        *,
        idle: Callable[[], Awaitable[None]],
        every: float = EVERY,
    ) -> None:
        self._make, self._idle, self._every = make, idle, every
        self._frame = b""
        self._fresh = asyncio.Event()
        self._builder: asyncio.Task[None] | None = None
        self.pages = 0
        self.frame_number = 0
        self.closed = False
        self._last = b""

    @property
    def full(self) -> bool:
        """Tell whether no more pages can be served."""
        return self.pages >= MOST_PAGES

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """Yield frames until the stream is closed: always the newest, skipping those in between."""
        self.pages += 1
        try:
            self._start()
            last_number = self.frame_number - 1 if self._frame else self.frame_number
            while self._builder is not None:
                if last_number == self.frame_number:
                    await self._fresh.wait()
                    continue
                last_number = self.frame_number
                yield self._frame
            if self._last:
                yield self._last
        finally:
            self.pages -= 1

    def _start(self) -> None:
        if self._builder is None and not self.closed:
            self._fresh = asyncio.Event()
            self._builder = asyncio.create_task(self._run(), name="console events")
            self._builder.add_done_callback(self._ended)

    def _ended(self, builder: "asyncio.Task[None]") -> None:
        if not builder.cancelled() and (error := builder.exception()) is not None:
            _log.error("the console's event stream failed; pages will reconnect", exc_info=error)

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        try:
            while self.pages:
                while self.pages:
                    due = clock() + self._every
                    self._publish(await self._make())
                    await asyncio.sleep(due - clock())
                self._frame = b""  # fine for a page opened soon after, stale an hour later
                await self._idle()
        finally:
            # Also after an error: the streams end, and the pages reconnect by themselves.
            self._builder = None
            self._fresh.set()

    def _publish(self, frame: bytes) -> None:
        self._frame = frame
        self.frame_number += 1
        woken, self._fresh = self._fresh, asyncio.Event()
        woken.set()

    async def close(self, last: bytes = b"") -> None:
        """End all pages' streams; `last` is what they are sent at the end."""
        self.closed, self._last = True, last
        if self._builder is not None:
            self._builder.cancel()
            await asyncio.wait([self._builder])
        self._builder = None
        self._fresh.set()
