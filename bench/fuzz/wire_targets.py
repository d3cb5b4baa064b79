"""What is read before anything else: record batches, seals, signatures, an issuer's answer."""

import struct

import orjson
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from agents.sealing import KeyRing
from bench.fuzz.targets import Target
from bench.hostile.wire import Raw, record_batch
from schemas.rows import Feature, RowReader
from streams.engine.changelogs.signing import HEADER, Signer
from streams.engine.state.table import StateError
from streams.kafka.batch import Batch
from streams.kafka.client.record_batches import ReadableRecords
from streams.kafka.tokens import read_answer

_KEYS = {"k1": bytes(32)}
_CODECS = range(5)
_FORMAT = 2
_HEAD, _LENGTH_AT, _LENGTH_END, _FORMAT_AT, _CHECKSUM_AT, _CHECKED_FROM = 61, 8, 12, 16, 17, 21


def wire_targets() -> dict[str, Target]:
    """Return every target by name."""
    answer = {"access_token": "a.b.c", "expires_in": 3600, "token_type": "Bearer", "scope": "kafka"}
    return {
        "record batch": _batches(),
        "sealed features": _sealed(),
        "signature": _signatures(),
        "issuer's answer": Target([orjson.dumps(answer)], read_answer, (ValueError,)),
    }


def _batches() -> Target:
    """Batches of each codec, and one with a header key that is not text."""
    corpus = [record_batch(Raw(1, b"key", b"value", ((b"\xff", b"content"),)))]
    for codec in _CODECS:
        builder = DefaultRecordBatchBuilder(_FORMAT, codec, False, -1, -1, -1, 1 << 20)
        for number in range(3):
            builder.append(number, number, b"key", b'{"v":1}', [("hb.reason", b"late")])
        corpus.append(bytes(builder.build()))

    def run(data: bytes) -> None:
        records = ReadableRecords(_framed(data))
        while records.has_next():
            records.next_batch().records()

    return Target(corpus, run, (CorruptRecordException,))


def _framed(data: bytes) -> bytes:
    """Return a batch with the length and the checksum that a broker demands."""
    batch = bytearray(data.ljust(_HEAD, b"\0"))
    struct.pack_into(">i", batch, _LENGTH_AT, len(batch) - _LENGTH_END)
    batch[_FORMAT_AT] = _FORMAT
    struct.pack_into(">I", batch, _CHECKSUM_AT, calc_crc32c(bytes(batch[_CHECKED_FROM:])))
    return bytes(batch)


def _sealed() -> Target:
    ring = KeyRing("instances.a", _KEYS)
    reader = RowReader([Feature("a"), Feature("b")], opener=ring.open_record)
    record = {"v": 1, "id": "p1", "x": ring.text("p1", b"[0.5,1]"), "at": 1}
    return Target([orjson.dumps(record)], lambda data: reader.read([data]))


def _signatures() -> Target:
    signer = Signer(_KEYS)
    (((_, good),),) = signer.headers("log", 0, [b"a/1"], [b"5"])
    assert good is not None  # noqa: S101 - what is signed has a signature

    def run(data: bytes) -> None:
        headers = {0: ((HEADER, data),)}
        signer.check(Batch("log", 0, 0, 1, 1, [0], [1], [b"a/1"], [b"5"], headers))

    return Target([good], run, (StateError,))
