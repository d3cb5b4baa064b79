"""The worker's web server: only our own pages, only on the configured address.

Faust's would listen on every interface, serve its tables and their keys, and stop the worker if
its port is taken.
"""

import errno
import logging
import socket
import ssl
from typing import Any

from aiohttp.web import SockSite
from faust.web.drivers import aiohttp as driver

from settings.errors import HbError, SettingsError
from settings.sections.worker import WorkerSettings

_TRIES = 100
_log = logging.getLogger(__name__)


class Web(driver.Web):
    """A server with only the pages that are added to it."""

    default_blueprints = ()
    production_blueprints = ()
    debug_blueprints = ()
    optional_blueprints = ()

    def __init__(self, app: Any, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.address: tuple[str, int] | None = None
        self._wanted, self._tls = (host, port), tls
        super().__init__(app)

    def _new_transport_tcp(self) -> Any:
        bound = free_socket(*self._wanted)
        self.address = bound.getsockname()[:2]
        _log.info("web pages at %s://%s:%d", "https" if self._tls else "http", *self.address)
        return SockSite(self._runner, bound, ssl_context=self._tls)


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
        what = getattr(error, "reason", None) or error.strerror or "not PEM"
        raise SettingsError(
            "worker.web_cert, web_key or web_client_ca cannot be used"
            f" ({what.replace('_', ' ').lower()}): they must be PEM files, and the key must have"
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
