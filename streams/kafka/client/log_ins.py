"""Log-ins that end: a connection that outlives its log-in has to repeat it in time.

A broker may limit how long a log-in is good, as it does with tokens (`connections.max.reauth.ms`,
KIP-368), and says for how long. A client then repeats it on the same connection, with no other
request in between; otherwise the broker closes the connection at the next request. aiokafka does
not repeat it, so all its connections would break each time, with transactions under way. Here the
first request after four fifths of that time repeats the log-in, and the others wait.

aiokafka also takes a refused token for a success: a server answers a bad token with a challenge
that holds the error (RFC 7628, section 3.2.2), and a good one with nothing.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any

from aiokafka.conn import AIOKafkaConnection, OAuthAuthenticator
from aiokafka.errors import KafkaConnectionError, KafkaError, SaslAuthenticationFailed
from aiokafka.protocol.admin import SaslAuthenticateRequest, SaslHandShakeRequest

from settings.errors import BrokerError

_RENEWED = 0.8
_AGAIN = 1.0
"""Seconds until a token is asked for again that could not be had."""

_step = OAuthAuthenticator.step
_send = AIOKafkaConnection.send
_close = AIOKafkaConnection.close


class NoTokenError(BrokerError, KafkaError):  # type: ignore[misc]  # aiokafka is untyped
    """There is no token to log in with; clients that run already try again."""


class _LogIn:
    """The log-in of a connection: until when it is good, and how it is repeated."""

    def __init__(self) -> None:
        self._renew_at = self._ends_at = float("inf")
        self._renewal: asyncio.Future[None] | None = None

    def granted(self, seconds: float) -> None:
        """Note for how long it is good."""
        now = asyncio.get_running_loop().time()
        self._renew_at, self._ends_at = now + _RENEWED * seconds, now + seconds

    def pending(self, connection: Any) -> asyncio.Future[None] | None:
        """Return the repetition that a request has to wait for, if it is time for one."""
        if self._renewal is not None and not self._renewal.done():
            return self._renewal
        if asyncio.get_running_loop().time() < self._renew_at:
            return None
        # A task of its own, because the request that waits for it may be cancelled.
        self._renewal = asyncio.ensure_future(self._renew(connection))
        self._renewal.add_done_callback(_heeded)
        return self._renewal

    async def _renew(self, connection: Any) -> None:
        self._renew_at = float("inf")
        try:
            if connection._sasl_oauth_token_provider is not None:
                # First of all: without a token the old log-in is good for as long as it lasts.
                await connection._sasl_oauth_token_provider.token()
            await connection._do_sasl_handshake()
        except NoTokenError as error:
            self._renew_at = asyncio.get_running_loop().time() + _AGAIN
            if self._renew_at >= self._ends_at:
                connection.close()
                raise KafkaConnectionError(str(error)) from error
        except BaseException:
            connection.close()
            raise


def _heeded(renewal: asyncio.Future[None]) -> None:
    """Mark the error as retrieved, so that asyncio does not report one that no request awaits."""
    if not renewal.cancelled():
        renewal.exception()


def _log_in(connection: Any) -> _LogIn:
    log_in: _LogIn | None = getattr(connection, "_log_in", None)
    if log_in is None:
        log_in = connection._log_in = _LogIn()
    return log_in


def _renewing_send(self: Any, request: Any, expect_response: bool = True) -> Awaitable[Any]:
    if isinstance(request, SaslAuthenticateRequest):
        return _noted(self, _send(self, request, expect_response))
    if not isinstance(request, SaslHandShakeRequest) and (renewal := _log_in(self).pending(self)):
        return _after(renewal, self, request, expect_response)
    sent: Awaitable[Any] = _send(self, request, expect_response)
    return sent


def _prompt_close(self: Any, reason: Any = None, exc: Any = None) -> Awaitable[None]:
    # A broker may not answer TLS's closing message, in the middle of a log-in or while it holds
    # back the answer to a fetch; waiting for that takes half a minute. By now every request has
    # been answered or given up.
    transport = self._writer.transport if self._writer else None
    closed: Awaitable[None] = _close(self, reason, exc)
    if transport is not None and self._security_protocol in ("SSL", "SASL_SSL"):
        transport.abort()
    return closed


async def _noted(connection: Any, sent: Awaitable[Any]) -> Any:
    answer = await sent
    lifetime = getattr(answer, "session_lifetime_ms", 0)
    if lifetime > 0:
        _log_in(connection).granted(lifetime / 1000)
    return answer


async def _after(
    renewal: asyncio.Future[None], connection: Any, request: Any, expect_response: bool
) -> Any:
    await asyncio.shield(renewal)
    return await _send(connection, request, expect_response)


async def _checked_step(self: Any, payload: bytes | None) -> Any:
    if self._token_sent and payload:
        raise SaslAuthenticationFailed("the broker does not accept the token")
    return await _step(self, payload)


def install() -> None:
    """Make all clients repeat their log-ins, and notice that a token is refused."""
    AIOKafkaConnection.send = _renewing_send
    AIOKafkaConnection.close = _prompt_close
    OAuthAuthenticator.step = _checked_step
