"""What a learner sees under AES-256-GCM: features on their way to it and while they wait for their
label, and what its rules have learned from them.

Every learner has keys of its own. The first encrypts, all of them decrypt, and the id of the key
stands beside what it sealed: so a key is changed by putting a new one in front, and dropped once
nothing is left under it.

What is sealed is bound to its place (the topic or the table), to the learner and to the instance
id (a model to its rule): moved to another patient or another learner, it does not open. A nonce is
12 random bytes. Such nonces are safe for 2^32 records under one key (NIST SP 800-38D, section 8.3);
change keys before.
"""

import base64
import binascii
import os
from collections.abc import Sequence
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from schemas.errors import RecordError
from schemas.refusals import Reason
from schemas.sealed import Opener, Sealed, write
from settings.client_settings import AnySettings
from settings.errors import SettingsError
from settings.sections.privacy import KeySettings
from streams.kafka.topics import local

_NONCE = 12
_KEY = 32
CONTEXTS = "contexts"
"""The place of a context's features."""


class KeyMissingError(Exception):
    """What was sealed is under a key that is not in the ring."""


class WrongKeyError(Exception):
    """What was sealed does not open: another key, altered, or of another patient."""


class KeyRing:
    """The keys of one place: the first one seals, all of them open.

    >>> ring = KeyRing("instances.a", {"k1": bytes(32)})
    >>> ring.open("patient-7", ring.seal("patient-7", b"{}"))
    b'{}'
    """

    def __init__(self, place: str, keys: dict[str, bytes]) -> None:
        self._place = place.encode()
        self._ciphers = {name: AESGCM(key) for name, key in keys.items()}
        self.writes = next(iter(keys), "")
        """The id of the key that seals."""

    def __bool__(self) -> bool:
        """Tell whether there is any key."""
        return bool(self._ciphers)

    def __contains__(self, key: str) -> bool:
        """Tell whether there is a key of this id."""
        return key in self._ciphers

    def seal(self, name: str, clear: bytes) -> Sealed:
        """Encrypt what belongs to an instance."""
        nonce = os.urandom(_NONCE)
        sealed = self._ciphers[self.writes].encrypt(nonce, clear, self._bound(name))
        return Sealed(self.writes, nonce + sealed)

    def open(self, name: str, sealed: Sealed) -> bytes:
        """Decrypt what belongs to an instance; raise KeyMissingError or WrongKeyError."""
        cipher = self._ciphers.get(sealed.key)
        if cipher is None:
            raise KeyMissingError
        nonce, content = sealed.content[:_NONCE], sealed.content[_NONCE:]
        try:
            return cipher.decrypt(nonce, content, self._bound(name))
        except (InvalidTag, ValueError):
            raise WrongKeyError from None

    def text(self, name: str, clear: bytes) -> str:
        """Return features encrypted as they travel."""
        return write(self.seal(name, clear))

    def open_record(self, name: str, sealed: Sealed) -> bytes:
        """Decrypt features that travelled; raise RecordError if that cannot be."""
        try:
            return self.open(name, sealed)
        except KeyMissingError:
            raise RecordError(
                Reason.UNDECRYPTABLE, "x: expected a key that this learner has (privacy.keys)"
            ) from None
        except WrongKeyError:
            raise RecordError(
                Reason.UNDECRYPTABLE,
                "x: expected text that its key opens: it was encrypted with another key of that"
                " id, was altered, or belongs to another id or learner",
            ) from None

    def _bound(self, name: str) -> bytes:
        return b"\0".join((b"hb1", self._place, name.encode()))


class Rings(NamedTuple):
    """The keys of one learner: for what travels, what waits in its state, and what it learned."""

    wire: KeyRing
    waiting: KeyRing
    models: KeyRing


def learner_rings(settings: AnySettings, learner: str) -> Rings | None:
    """Return the keys of a learner, read from where the settings say; None if it has none."""
    keys = read_keys(settings.privacy.keys.get(learner, ()), f"privacy.keys.{learner}")
    if not keys:
        return None
    agent = local(learner)
    return Rings(
        KeyRing(f"instances.{learner}", keys),
        KeyRing(f"{agent}.features", keys),
        KeyRing(f"{agent}.models", keys),
    )


def context_ring(settings: AnySettings) -> KeyRing | None:
    """Return the keys of contexts; None if there are none."""
    keys = read_keys(settings.privacy.context_keys, "privacy.context_keys")
    return KeyRing(CONTEXTS, keys) if keys else None


def instance_opener(settings: AnySettings, learner: str) -> Opener | None:
    """Return what decrypts a learner's instances, None if it has no keys."""
    rings = learner_rings(settings, learner)
    return None if rings is None else rings.wire.open_record


def context_opener(settings: AnySettings) -> Opener | None:
    """Return what decrypts contexts, None if they have no keys."""
    ring = context_ring(settings)
    return None if ring is None else ring.open_record


def read_keys(keys: Sequence[KeySettings], where: str) -> dict[str, bytes]:
    """Return keys by their ids, read from where the settings say; `where` is for errors."""
    return {key.id: _key(key, f"{where}: key {key.id}") for key in keys}


def _key(key: KeySettings, where: str) -> bytes:
    """Return a key's bytes; the error never shows any of them."""
    text = key.read().strip()
    for decode in (bytes.fromhex, lambda text: base64.b64decode(text, validate=True)):
        try:
            key_bytes = decode(text)
        except (ValueError, binascii.Error):
            continue
        if len(key_bytes) == _KEY:
            return key_bytes
    raise SettingsError(
        f"{where}, {key}: expected 32 random bytes in base64 or hexadecimal digits; make one with:"
        " openssl rand -base64 32"
    )
