"""Checks every request to a worker's pages: who sends it, for which host name, and how often.

The guard stands before all pages, /metrics, /healthz and /readyz among them:

1. There is a limit to the answers per second, refusals included, that one client gets, and to those
   that all clients get together. Further requests wait; those that would wait too long are refused.
   The pages run in the engine's event loop, so this also limits the time they take from it. Probes
   have budgets of their own.
2. The request must be for a name of this worker, and not come from a page of another site.
3. With `worker.web_token` it must carry the token, as bearer token or as the password of any user
   (which a browser prompts for). Probes have no token: /healthz and /readyz then answer yes or no.

The runbook is the same everywhere: other sites may link to it, and it needs no token.
"""

import asyncio
import base64
import binascii
import hmac
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from agents.monitor import runbook_page
from agents.monitor.console.access import HEADERS, objection
from settings.sections.worker import WorkerSettings

RATE = 50.0
"""Answers per second that a client gets in the long run."""
BURST = 200.0
"""Answers that it gets at once: several consoles with all their files."""
TOGETHER = 10.0
"""All clients together get this many times as much: one sender can use many addresses (127/8)."""
_COSTS = {"/metrics": 10.0}
"""Pages that count as more than one answer."""
_PATIENCE = 2.0
"""Seconds that an answer may be put off; a client that is further ahead is refused."""
_CLIENTS = 10_000
_PROBES = frozenset(("/healthz", "/readyz"))
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def install(app: Any, worker: WorkerSettings) -> None:
    """Guard all pages of an application that has not started yet."""
    app.web.web_app.middlewares.append(guard(worker))


def guard(worker: WorkerSettings) -> Any:
    """Return what aiohttp calls before every page."""
    token = None if worker.web_token is None else worker.web_token.read()
    single, together = Budget(), Budget(times=TOGETHER)

    @web.middleware
    async def guarded(request: web.Request, handler: _Handler) -> web.StreamResponse:
        probe = request.path in _PROBES
        cost = _COSTS.get(request.path, 1.0)
        delay = single.delay(f"{request.remote} {probe}", cost)
        if delay <= _PATIENCE:
            delay = max(delay, together.delay(f"{probe}", cost))
        if delay > _PATIENCE:
            return _refused(429, "too many requests", {"Retry-After": "1", "Connection": "close"})
        if delay > 0:
            await asyncio.sleep(delay)
        public = request.path == runbook_page.PATH
        reason = objection(request.headers, worker.web_host, worker.web_names, public=public)
        if reason is not None:
            return _refused(403, reason)
        authorization = request.headers.get("Authorization", "")
        if token is None or public or has_token(authorization, token):
            return await handler(request)
        if probe:
            return web.Response(status=(await handler(request)).status, headers=HEADERS)
        asks = {"WWW-Authenticate": 'Basic realm="hb: any name, the token as password"'}
        return _refused(401, "this worker asks for its token", asks)

    return guarded


def has_token(authorization: str, token: str) -> bool:
    """Tell whether a request's `Authorization` carries the token.

    >>> has_token("Bearer secret", "secret"), has_token("", "secret")
    (True, False)
    """
    scheme, _, credentials = authorization.partition(" ")
    if scheme.lower() == "basic":
        try:
            credentials = base64.b64decode(credentials, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return False
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(credentials.encode(), token.encode())


class Budget:
    """How long a client's next answer must wait so that no client gets more than its rate.

    For each client there is the time at which it would be even again (the generic cell rate
    algorithm): an answer moves that time ahead by its cost, and it may be ahead by one burst.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, times: float = 1.0) -> None:
        self._clock, self._rate = clock, RATE * times
        self._even: dict[str, float] = {}

    def delay(self, client: str, cost: float = 1.0) -> float:
        """Return the seconds to wait; beyond the patience the request does not count."""
        now = self._clock()
        even = max(now, self._even.get(client, now)) + cost / self._rate
        delay = max(0.0, even - now - BURST / RATE)
        if delay <= _PATIENCE:
            self._make_room(now)
            self._even[client] = even
        return delay

    def _make_room(self, now: float) -> None:
        if len(self._even) >= _CLIENTS:
            self._even = {client: even for client, even in self._even.items() if even > now}


def _refused(status: int, reason: str, headers: dict[str, str] | None = None) -> web.StreamResponse:
    return web.Response(status=status, text=f"{reason}\n", headers={**HEADERS, **(headers or {})})
