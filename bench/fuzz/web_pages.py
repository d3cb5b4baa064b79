"""A worker's pages on a real socket, for requests of any shape."""

import asyncio
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from agents.worker import worker_app
from settings.model import Settings

_WAIT = 5.0
_ENOUGH = 64
_PATHS = (
    "/", "/events", "/learner/imaging", "/console/main.js", "/diagnosis/0-5-abc", "/viewers",
    "/metrics", "/healthz", "/readyz", "/no/such%2fpage?a=b",
)  # fmt: skip
REQUESTS = [
    f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:6066\r\nAuthorization: Basic YTpi\r\n"
    f'If-None-Match: "abc"\r\nAccept-Encoding: gzip\r\nContent-Length: 0\r\n\r\n'.encode()
    for path in _PATHS
]


class ServerError(Exception):
    """A page broke down over a request."""


@contextmanager
def served(settings: Settings) -> Iterator[int]:
    """Serve all pages of a worker that has no broker, in a thread; yield the port."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    started = asyncio.run_coroutine_threadsafe(_start(settings), loop)
    runner, port = started.result(_WAIT)
    try:
        yield port
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(_WAIT)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_WAIT)


async def _start(settings: Settings) -> tuple[web.AppRunner, int]:
    pages: Any = worker_app(settings).web
    pages.init_server()
    runner = web.AppRunner(pages.web_app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listener).start()
    return runner, listener.getsockname()[1]


def ask(port: int, request: bytes) -> None:
    """Send a request; raise ServerError unless it is answered, refused or hung up on properly."""
    # Every request comes from another address of loopback: the guard counts by address.
    number = random.randrange(2, 2**24 - 2)  # noqa: S311 - not a secret
    source = f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    answer = b""
    with socket.create_connection(("127.0.0.1", port), _WAIT, (source, 0)) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            while len(answer) < _ENOUGH and (part := connection.recv(4096)):
                answer += part
        except ConnectionError:
            return
        except TimeoutError:
            raise ServerError("no answer") from None
    status = answer[9:12]
    # 501 is aiohttp's answer to transfer codings that it does not know.
    if answer.startswith(b"HTTP/") and status >= b"500" and status not in (b"501", b"503"):
        raise ServerError(f"status {status.decode(errors='replace')}")
