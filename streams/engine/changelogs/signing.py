"""Proof of who wrote a changelog: a keyed digest (BLAKE2b) beside every record.

Somebody who may write to a changelog but does not have its key can neither alter an entry, nor move
it to another key, topic or partition, nor delete it: a deletion is a record too. What remains
possible is to write an older entry again, and to remove records from the topic itself.

The first key signs, all of them are known, and its id travels with the digest. With a key every
record must be signed: state from before is refused, because anyone could have written it.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from hmac import compare_digest

from streams.engine.state.table import StateError
from streams.kafka.batch import Batch

HEADER = "signature"
_BYTES = 16
_ABSENT, _PRESENT = b"\0", b"\1"


class Signer:
    """Signs what a task writes to its changelogs, and checks what is read back.

    >>> signer = Signer({"k1": bytes(32)})
    >>> one, other = signer.headers("log", 0, [b"a/1", b"a/2"], [b"5", b"5"])
    >>> one == other, signer.headers("log", 0, [b"a/1"], [b"5"])[0] == one
    (False, True)
    """

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self._digests = {name.encode(): blake2b(key=key, digest_size=_BYTES)
                         for name, key in keys.items()}  # fmt: skip
        self._writes = next(iter(self._digests))

    def headers(
        self,
        topic: str,
        partition: int,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
    ) -> list[list[tuple[str, bytes | None]]]:
        """Return the headers of records, in their order."""
        place = _place(topic, partition)
        start = self._writes + b":"
        return [
            [(HEADER, start + self._digest(self._writes, place, key, value))]
            for key, value in zip(keys, values, strict=True)
        ]

    def check(self, batch: Batch) -> None:
        """Refuse a piece of a changelog in which a record was not written with a known key."""
        place = _place(batch.topic, batch.partition)
        for index, (key, value) in enumerate(zip(batch.keys, batch.values, strict=True)):
            signature = dict(batch.headers.get(index, ())).get(HEADER) or b""
            name, _, digest = signature.partition(b":")
            if name not in self._digests:
                raise StateError(_refusal(batch, index, "is not signed with a key that is known"))
            if not compare_digest(digest, self._digest(name, place, key, value)):
                raise StateError(_refusal(batch, index, "does not fit its signature"))

    def _digest(self, name: bytes, place: bytes, key: bytes | None, value: bytes | None) -> bytes:
        digest = self._digests[name].copy()
        key = key or b""
        digest.update(place + len(key).to_bytes(4, "big") + key)
        digest.update(_ABSENT if value is None else _PRESENT + value)
        return digest.digest()


def _place(topic: str, partition: int) -> bytes:
    return f"{topic}/{partition}\0".encode()


def _refusal(batch: Batch, index: int, what: str) -> str:
    return (
        f"the changelog {batch.topic}/{batch.partition}: the record at offset"
        f" {batch.offsets[index]} {what} (privacy.state_keys): another program has written it, or"
        " it is from before there were keys; restore the topic, add the missing key, or use another"
        " topics.prefix"
    )
