"""`hb bench records`: how many records per second are read (decoded and checked) and written.

Reading, in batches as the workers do, from the same bytes:

    ours            the readers of `schemas`: msgspec, then names, ids and nesting checked
    msgspec_alone   msgspec's typed decoding and nothing else: what those checks cost
    orjson_by_hand  orjson, and checks by hand into frozen dataclasses

Writing existing records: ours (msgspec) against orjson on the dataclasses, and orjson on dicts
made from our records.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import orjson

from bench.records_by_hand import FEATURES, LABELS, LEARNERS, READ, RefusedError
from bench.timing import race
from schemas.reading import LabelReader, Reader
from schemas.records import Instance, Label, Prediction, Record
from schemas.rows import Feature, RowReader
from schemas.writing import encode, encode_all

BATCH = 2_000
_AT = 1_760_000_000_000

Rival = Callable[[], object]


def run(rounds: int = 60, tick: Rival = lambda: None, seed: int = 1) -> dict[str, Any]:
    """Measure, and return the report that `--json` prints."""
    figures: dict[str, float] = {}
    ratios: dict[str, float] = {}
    for kind, records in _records(random.Random(seed)).items():  # noqa: S311 - only test data
        values = encode_all(records)
        for action, rivals in (
            ("read", _readers(kind, values)),
            ("write", _writers(kind, records)),
        ):
            rates = {n: len(records) / s for n, s in race(rivals, rounds, tick).items()}
            for name, rate in rates.items():
                figures[f"{action}_{kind}.{name}_records_per_s"] = rate
                if name != "ours":
                    ratios[f"{action}_{kind}.{name}"] = rates["ours"] / rate
        figures[f"{kind}_bytes"] = sum(map(len, values)) / len(values)
    settings = {"batch": BATCH, "features": len(FEATURES), "rounds": rounds, "seed": seed}
    return {"ratios": ratios, "figures": figures, "settings": settings}


def steps(rounds: int) -> int:
    """Return how often `tick` will be called."""
    return len(READ) * 6 * rounds


def _records(rng: random.Random) -> dict[str, list[Record]]:
    labels, learners = sorted(LABELS), sorted(LEARNERS)
    ids = [f"{rng.getrandbits(64):016x}" for _ in range(BATCH)]

    def prediction(name: str) -> Prediction:
        label, rate = rng.choice(labels), round(rng.random(), 6)
        return Prediction(
            id=name,
            learner=rng.choice(learners),
            label=label,
            phase=1,
            cube=str(rng.getrandbits(10)),
            rule="logistic",
            exploring=rng.random() < 0.1,
            trials=rng.randrange(1_000),
            at=_AT,
            accuracy=rate,
            low=rate * 0.9,
            high=1.0,
            epsilon=rng.random(),
        )

    return {
        "label": [Label(name, rng.choice(labels), _AT) for name in ids],
        "instance": [Instance(name, tuple(rng.random() for _ in FEATURES), _AT) for name in ids],
        "prediction": [prediction(name) for name in ids],
    }


def _readers(kind: str, values: Sequence[bytes]) -> dict[str, Rival]:
    ours: dict[str, LabelReader | RowReader | Reader[Prediction]] = {
        "label": LabelReader(sorted(LABELS)),
        "instance": RowReader([Feature(name) for name in FEATURES]),
        "prediction": Reader(Prediction, known={"label": LABELS, "learner": LEARNERS}),
    }
    reader = ours[kind]
    decode = msgspec.json.Decoder(reader.record).decode

    def read() -> None:
        if reader.read(values).errors:
            raise RuntimeError("a reader refused a good record")

    return {
        "ours": read,
        "msgspec_alone": lambda: [decode(value) for value in values],
        "orjson_by_hand": lambda: by_hand(READ[kind], values),
    }


def by_hand(read: Callable[[bytes], object], batch: Sequence[bytes]) -> tuple[list[object], int]:
    """Return the good records of a batch, and how many were refused."""
    records: list[object] = []
    refused = 0
    for value in batch:
        try:
            records.append(read(value))
        except (orjson.JSONDecodeError, RefusedError):
            refused += 1
    return records, refused


def _writers(kind: str, records: Sequence[Record]) -> dict[str, Rival]:
    values = encode_all(records)
    by_class = [READ[kind](value) for value in values]
    return {
        "ours": lambda: _write(encode, records),
        "orjson_dataclass": lambda: _write(orjson.dumps, by_class),
        "orjson_dict": lambda: _write(_by_dict, records),
    }


def _by_dict(record: Record) -> bytes:
    return orjson.dumps({"v": 1, **msgspec.structs.asdict(record)})


def _write(encode: Callable[[Any], bytes], records: Sequence[object]) -> None:
    # Outputs are dropped: orjson's buffers start large, and keeping a batch of them would charge
    # orjson for memory pages, which says more about the allocator than about writing.
    for record in records:
        encode(record)
