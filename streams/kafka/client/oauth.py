"""A broker that refuses a token says so in its answer, which aiokafka takes for a success.

A server answers a bad token with a challenge that holds the error (RFC 7628, section 3.2.2), and a
good one with nothing. aiokafka does not look at it, and everything after it fails in odd ways.
"""

from typing import Any

from aiokafka.conn import OAuthAuthenticator
from aiokafka.errors import SaslAuthenticationFailed

_step = OAuthAuthenticator.step


async def _checked_step(self: Any, payload: bytes | None) -> Any:
    if self._token_sent and payload:
        raise SaslAuthenticationFailed("the broker does not accept the token")
    return await _step(self, payload)


def install() -> None:
    """Make all clients notice."""
    OAuthAuthenticator.step = _checked_step
