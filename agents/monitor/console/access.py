"""Which requests are answered, and what a browser may do with the answer.

The console shows no patient id in full, yet it is meant only for those who run the system. So a
page of another site must not read it: neither through the browser of somebody who can reach the
worker (the checks of `Origin` and `Sec-Fetch-Site`), nor under a name of its own that resolves to
this machine (DNS rebinding; the check of `Host`).
"""

import ipaddress
import socket
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from settings.sections.worker import is_local

# Plotly adds an empty <style> element and fills it through the CSSOM; this is the hash of "".
_EMPTY = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": f"'self' {_EMPTY}",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "Content-Security-Policy": "; ".join(f"{key} {value}" for key, value in _POLICY.items()),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def objection(
    headers: Any, served: str, names: Collection[str] = (), *, public: bool = False
) -> str | None:
    """Return why a request is refused, None if it is not.

    served   the address listened on
    names    what else this worker is called
    public   whether pages of other sites may link to the page

    >>> objection({"Host": "localhost:6066"}, "127.0.0.1")
    >>> objection({"Host": "evil.example"}, "127.0.0.1")
    'this worker serves its own machine only: use localhost or 127.0.0.1'
    >>> objection({"Host": "localhost:6066", "Origin": "http://evil.example"}, "127.0.0.1")
    'pages of other sites are refused'
    """
    host = headers.get("Host", "")
    name = _name(host)
    if not is_local(name) and name not in names:
        if is_local(served):
            return "this worker serves its own machine only: use localhost or 127.0.0.1"
        # A numeric address is not a name that another site could have pointed here.
        if not _is_address(name) and name not in (served, socket.gethostname().lower()):
            return "this worker is not called so: use its address, or list the name in web_names"
    if public:
        return None
    origin = headers.get("Origin")
    foreign = origin is not None and urlsplit(origin).netloc != host
    if foreign or headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        return "pages of other sites are refused"
    return None


def _name(host: str) -> str:
    """Return a Host header without its port.

    >>> _name("localhost:6066"), _name("[::1]:6066")
    ('localhost', '::1')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
