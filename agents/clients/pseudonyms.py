"""Ids and subjects that mean nothing without the key: HMAC-SHA256 of the original.

With `privacy.id_key` set, our clients send these in place of ids, and find answers by the original.
The same original gives the same pseudonym, so a label finds its patient, no matter who sends it.
"""

import base64
import hmac
from collections.abc import Sequence

from schemas.kinds import MAX_TEXT, has_control_characters
from settings.client_settings import AnySettings

_SIZE = 24


class Pseudonyms:
    """Maps originals to what travels; without a key, each to itself."""

    def __init__(self, settings: AnySettings) -> None:
        secret = settings.privacy.id_key
        self._key = None if secret is None else secret.read().encode()

    def __bool__(self) -> bool:
        """Tell whether ids are replaced."""
        return self._key is not None

    def id(self, name: str) -> str:
        """Return what travels in place of an id."""
        return self._of(b"id", name)

    def subject(self, name: str | None) -> str | None:
        """Return what travels in place of a subject."""
        return None if name is None else self._of(b"subject", name)

    def ids(self, names: Sequence[str]) -> Sequence[str]:
        """Return what travels in place of many ids."""
        return names if self._key is None else [self.id(name) for name in names]

    def subjects(self, names: Sequence[str | None] | None) -> Sequence[str | None] | None:
        """Return what travels in place of many subjects."""
        return names if names is None or not self else [self.subject(name) for name in names]

    def _of(self, kind: bytes, name: str) -> str:
        # What is not an id stays as it is, so that the check that follows refuses it.
        if self._key is None or not 0 < len(name) <= MAX_TEXT or has_control_characters(name):
            return str(name)
        original = name.encode("utf-8", "surrogatepass")
        code = hmac.digest(self._key, kind + b"\0" + original, "sha256")[:_SIZE]
        return base64.urlsafe_b64encode(code).decode()
