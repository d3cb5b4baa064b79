"""The worker's web server: only our own pages, only on the configured address.

Faust's would listen on every interface, serve its tables and their keys, and stop the worker if
its port is taken.
"""

import errno
import logging
import socket
from typing import Any

from aiohttp.web import SockSite
from faust.web.drivers import aiohttp as driver

from settings.errors import HbError

_TRIES = 100
_log = logging.getLogger(__name__)


class Web(driver.Web):
    """A server with only the pages that are added to it."""

    default_blueprints = ()
    production_blueprints = ()
    debug_blueprints = ()
    optional_blueprints = ()

    def __init__(self, app: Any, host: str, port: int) -> None:
        self.address: tuple[str, int] | None = None
        self._wanted = (host, port)
        super().__init__(app)

    def _new_transport_tcp(self) -> Any:
        bound = free_socket(*self._wanted)
        self.address = bound.getsockname()[:2]
        _log.info("web pages at http://%s:%d", *self.address)
        return SockSite(self._runner, bound)


def free_socket(host: str, port: int) -> socket.socket:
    """Return a socket on the requested port, or on the next free one; any for port 0."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in range(port, min(port + _TRIES, 65536)) if port else (0,):
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, number))
            made.listen(128)
        except OSError as error:
            made.close()
            if error.errno != errno.EADDRINUSE:
                raise HbError(f"cannot serve web pages on {host}: {error.strerror}") from error
        else:
            return made
    raise HbError(f"no free port for web pages on {host} from {port} on")
