"""The worker's web server: only our own pages, only on the configured address.

Faust's would listen on every interface, serve its tables and their keys, and stop the worker if
its port is taken. aiohttp's would accept connections until the process has no file left to open,
and then the engine could open none either.
"""

import asyncio
import errno
import logging
import resource
import socket
import ssl
from typing import Any

from aiohttp.web import BaseSite, SockSite
from faust.web.drivers import aiohttp as driver

from settings.errors import HbError, SettingsError
from settings.sections.worker import WorkerSettings

_TRIES = 100
MOST_CONNECTIONS = 1_000
_SHARE = 0.5
"""Fraction of the files that the process may open, for connections to its pages."""
_HANDSHAKE = 10.0
"""Seconds that a client may take for TLS."""
_log = logging.getLogger(__name__)


class Web(driver.Web):
    """A server with only the pages that are added to it."""

    default_blueprints = ()
    production_blueprints = ()
    debug_blueprints = ()
    optional_blueprints = ()

    def __init__(self, app: Any, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.address: tuple[str, int] | None = None
        self._address, self._tls = (host, port), tls
        super().__init__(app)

    def _new_transport_tcp(self) -> Any:
        bound = free_socket(*self._address)
        self.address = bound.getsockname()[:2]
        _log.info("web pages at %s://%s:%d", "https" if self._tls else "http", *self.address)
        return _Site(self._runner, bound, ssl_context=self._tls)


class _Site(SockSite):
    """Accepts so many connections at a time; others are closed unheard."""

    async def start(self) -> None:
        await BaseSite.start(self)
        handlers = self._runner.server
        assert handlers is not None  # noqa: S101 - the runner was set up
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST_CONNECTIONS if files < 0 else min(MOST_CONNECTIONS, int(_SHARE * files))

        def handler() -> asyncio.Protocol:
            return _Unheard() if len(handlers.connections) >= most else handlers()

        self._server = await asyncio.get_running_loop().create_server(
            handler,
            sock=self._sock,
            ssl=self._ssl_context,
            backlog=self._backlog,
            ssl_handshake_timeout=_HANDSHAKE if self._ssl_context else None,
        )


class _Unheard(asyncio.Protocol):
    """Closes a connection as soon as there is one."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a server has no others
        transport.abort()


def page_tls(worker: WorkerSettings) -> ssl.SSLContext | None:
    """Return the TLS context of the pages, if they are served over TLS."""
    if worker.web_cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # A password is given because OpenSSL would else ask for one on the terminal.
        context.load_cert_chain(worker.web_cert, worker.web_key, password="")
        if worker.web_client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(worker.web_client_ca)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error.strerror or "not PEM"
        raise SettingsError(
            "worker.web_cert, web_key or web_client_ca cannot be used"
            f" ({reason.replace('_', ' ').lower()}): they must be PEM files, and the key must have"
            " no password"
        ) from None
    return context


def free_socket(host: str, port: int) -> socket.socket:
    """Return a socket on the requested port, or on the next free one; any for port 0."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in range(port, min(port + _TRIES, 65536)) if port else (0,):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
            listener.listen(128)
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE:
                raise HbError(f"cannot serve web pages on {host}: {error.strerror}") from error
        else:
            return listener
    raise HbError(f"no free port for web pages on {host} from {port} on")
