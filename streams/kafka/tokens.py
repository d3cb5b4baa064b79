"""Tokens for SASL OAUTHBEARER: fetched from an OpenID Connect issuer, or by a function of yours.

Every connection that is opened asks for a token, and a broker ends connections whose token has
expired; so a token is kept while it is fresh, and renewed when four fifths of its life are over.
"""

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

import aiohttp
from aiokafka.abc import AbstractTokenProvider

from learners.errors import LearnerError
from learners.named_code import load
from settings.errors import SettingsError
from settings.sections.broker import TokenSettings
from streams.kafka.client.log_ins import NoTokenError

_FRESH = 0.8
_PATIENCE = 10.0
_SHORTEST = 1.0


class IssuedTokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka is untyped
    """Tokens by the client credentials grant (RFC 6749, section 4.4)."""

    def __init__(
        self, settings: TokenSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings, self._clock = settings, clock
        self._token, self._until = "", 0.0
        self._asking = asyncio.Lock()
        self.fetched = 0
        """How many tokens were issued to us."""

    async def token(self) -> str:
        """Return a token that is still fresh."""
        async with self._asking:
            if self._clock() >= self._until:
                asked = self._clock()
                self._token, life = await self._ask()
                self._until = asked + max(_FRESH * life, _SHORTEST)
                self.fetched += 1
        return self._token

    async def _ask(self) -> tuple[str, float]:
        issuer = self._settings
        assert issuer.url is not None  # noqa: S101 - settings without an address have a function
        assert issuer.client_secret is not None  # noqa: S101 - and with one a secret
        form = {"grant_type": "client_credentials"} | (
            {"scope": issuer.scope} if issuer.scope else {}
        )
        log_in = aiohttp.encode_basic_auth(issuer.client_id or "", issuer.client_secret.read())
        timeout = aiohttp.ClientTimeout(total=_PATIENCE)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(issuer.url, data=form, headers={"Authorization": log_in}) as answer,
            ):
                if answer.status in (400, 401, 403):
                    raise NoTokenError(
                        f"the token issuer at {issuer.url} refuses this client (status"
                        f" {answer.status}); see broker.security.token"
                    )
                document = await answer.json(content_type=None)
                return str(document["access_token"]), float(document.get("expires_in", 60))
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError) as error:
            raise NoTokenError(
                f"no token from {issuer.url} ({type(error).__name__}); see broker.security.token"
            ) from None


class OwnTokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka is untyped
    """Tokens that a function returns, for clouds with a scheme of their own."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function

    async def token(self) -> str:
        """Call the function, in a thread unless it is a coroutine."""
        if inspect.iscoroutinefunction(self._function):
            return str(await self._function())
        return str(await asyncio.to_thread(self._function))


def token_provider(settings: TokenSettings) -> AbstractTokenProvider:
    """Return what gives connections their tokens."""
    if settings.function is None:
        return IssuedTokens(settings)
    package = settings.function.partition(":")[0]
    try:
        return OwnTokens(load("broker", "function", settings.function, [package]))
    except LearnerError as error:
        raise SettingsError(f"broker.security.token.function: {error}") from None
