"""Tokens for SASL OAUTHBEARER: fetched from an OpenID Connect issuer, or by a function of yours.

Every connection that is opened asks for a token, and a broker ends connections whose token has
expired; so a token is kept while it is fresh, and renewed when four fifths of its life are over.
"""

import asyncio
import inspect
import math
import time
from collections.abc import Callable
from typing import Annotated, Any

import aiohttp
import msgspec
from aiokafka.abc import AbstractTokenProvider

from learners.errors import LearnerError
from learners.named_code import load
from settings.errors import SettingsError
from settings.sections.broker import TokenSettings
from streams.kafka.client.log_ins import NoTokenError

_FRESH = 0.8
_PATIENCE = 10.0
_SHORTEST = 1.0
_LIFE = 60.0
"""Seconds that a token is good for whose issuer does not say."""


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
                asked_at = self._clock()
                self._token, life = await self._ask()
                self._until = asked_at + max(_FRESH * life, _SHORTEST)
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
                return read_answer(await answer.read())
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise _no_token(issuer.url, error) from None


class _Answer(msgspec.Struct):
    """What an issuer answers (RFC 6749, section 5.1)."""

    access_token: Annotated[str, msgspec.Meta(min_length=1)]
    expires_in: float | None = None


def read_answer(content: bytes) -> tuple[str, float]:
    """Return a token and the seconds that it is good for; raise ValueError if there is none."""
    try:
        answer = msgspec.json.decode(content, type=_Answer, strict=False)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError("not a token") from error
    life = _LIFE if answer.expires_in is None else answer.expires_in
    if not math.isfinite(life):
        raise ValueError("a token that is good for ever")
    return answer.access_token, life


class OwnTokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka is untyped
    """Tokens that a function returns, for clouds with a scheme of their own."""

    def __init__(self, name: str, function: Callable[[], Any]) -> None:
        self._name, self._function = name, function

    async def token(self) -> str:
        """Call the function, in a thread unless it is a coroutine."""
        try:
            if inspect.iscoroutinefunction(self._function):
                return str(await self._function())
            return str(await asyncio.to_thread(self._function))
        except Exception as error:  # whatever goes wrong there, it may go well the next time
            raise _no_token(self._name, error) from error


def _no_token(source: str, error: Exception) -> NoTokenError:
    return NoTokenError(
        f"no token from {source} ({type(error).__name__}); see broker.security.token"
    )


def token_provider(settings: TokenSettings) -> AbstractTokenProvider:
    """Return what gives connections their tokens."""
    if settings.function is None:
        return IssuedTokens(settings)
    package = settings.function.partition(":")[0]
    try:
        function = load("broker", "function", settings.function, [package])
    except LearnerError as error:
        raise SettingsError(f"broker.security.token.function: {error}") from None
    return OwnTokens(settings.function, function)
