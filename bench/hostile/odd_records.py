"""Odd records, made at the level of Kafka's protocol: what any client may write to our topics.

`KINDS` names every kind with the topics it is written to and what may become of it: `USED`, a
reason of the dead letters, or `REFUSED` by the broker. A record carries its number in its key or in
a header, so it can be found on its topic whichever client wrote it.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import Any

USED, REFUSED, UNREAD = "used", "refused", "unread"
"""UNREAD: no agent reads the topic as an input; readers of outputs skip the record."""
NUMBER_HEADER = b"odd-number"
_NUMBER = re.compile(rb"odd-\d+-(\d+)$")
HUGE = 3 << 20
OVER_LIMIT = 300 << 10
"""More than a reader accepts, less than a broker does."""
BEYOND_BROKER = 5 << 20
HOUR, MINUTE = 3_600_000, 60_000
YEAR_2100, YEAR_2001 = 4_102_444_800_000, 978_307_200_000

Document = dict[str, Any]
Headers = tuple[tuple[bytes, bytes | None], ...]


@dataclass(frozen=True)
class Odd:
    """A record to write; what is None is left to the client.

    `misplaced` asks for a partition other than the id's.
    """

    number: int
    kind: str
    topic: str
    id: str
    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    headers: Headers = ()
    codec: str = "none"
    misplaced: bool = False


@dataclass(frozen=True)
class Site:
    """The topics by role, and a good document for each of them."""

    topics: Mapping[str, str]
    documents: Mapping[str, Document]
    now: Callable[[], int]


Change = Callable[[Document], bytes | None]
Shape = Callable[[Odd, Site], Odd]


@dataclass(frozen=True)
class Kind:
    """One kind of odd record: its value, its other fields, its topics and its allowed outcomes."""

    name: str
    outcomes: frozenset[str]
    roles: tuple[str, ...]
    value: Change
    shape: Shape
    clients: tuple[str, ...]


INPUTS = ("instances", "contexts", "labels", "predictions", "feedback")
ROWS = ("instances", "contexts")
COUNTING = ("predictions", "feedback")
_NO_KCAT = ("aiokafka", "confluent")
_ONE = ("aiokafka",)


def plain(document: Document) -> bytes:
    """Write a document as it is."""
    return json.dumps(document, separators=(",", ":")).encode()


def _as_it_is(odd: Odd, _site: Site) -> Odd:
    return odd


def _with(**fields: Any) -> Change:
    return lambda document: plain({**document, **fields})


def _without(*names: str) -> Change:
    return lambda document: plain({k: v for k, v in document.items() if k not in names})


def _raw(value: bytes | None) -> Change:
    return lambda _document: value


def _spliced(find: bytes, put: bytes) -> Change:
    return lambda document: plain(document).replace(find, put, 1)


def _x(change: Callable[[Any], Any]) -> Change:
    return lambda document: plain({**document, "x": change(document["x"])})


def _nested(document: Document) -> bytes:
    deep = b"[" * 5_000 + b"]" * 5_000
    return plain(document)[:-1] + b',"deep":' + deep + b"}"


def _padded(size: int) -> Change:
    return lambda document: plain({**document, "note": "a" * size})


def _key(make: Callable[[Odd], bytes | None]) -> Shape:
    return lambda odd, _site: _replaced(odd, key=make(odd))


def _at(offset: int | None, absolute: int | None = None) -> Shape:
    def shape(odd: Odd, site: Site) -> Odd:
        at = absolute if absolute is not None else site.now() + (offset or 0)
        return _replaced(odd, timestamp=at)

    return shape


def _headers(*headers: tuple[bytes, bytes | None]) -> Shape:
    return lambda odd, _site: _replaced(odd, headers=(*odd.headers, *headers))


def _codec(name: str) -> Shape:
    return lambda odd, _site: _replaced(odd, codec=name)


def _misplaced(odd: Odd, _site: Site) -> Odd:
    return _replaced(odd, misplaced=True)


def _replaced(odd: Odd, **changes: Any) -> Odd:
    return Odd(**{**odd.__dict__, **changes})


CODECS = ("gzip", "snappy", "lz4", "zstd")


def kind(
    name: str,
    outcomes: str,
    value: Change = plain,
    shape: Shape = _as_it_is,
    *,
    roles: tuple[str, ...] = INPUTS,
    clients: tuple[str, ...] = ("aiokafka", "confluent", "kcat"),
) -> Kind:
    """Return a kind; `outcomes` are names separated by spaces."""
    return Kind(name, frozenset(outcomes.split()), roles, value, shape, clients)


_ALL = (
    # Values that are not records.
    kind("tombstone", "empty", _raw(None)),
    kind("empty_value", "empty", _raw(b""), clients=_NO_KCAT),
    kind("binary", "not_utf8 malformed", _raw(b"\x00\xff\xfe\x80")),
    kind("text", "malformed", _raw(b"the patient is ill")),
    kind("cut_off", "malformed", lambda document: plain(document)[:-9]),
    kind("two_objects", "malformed", lambda document: 2 * plain(document)),
    kind("array", "wrong_type malformed", _raw(b"[1,2,3]")),
    kind("number", "wrong_type malformed", _raw(b"17")),
    kind("null", "wrong_type malformed", _raw(b"null")),
    kind("utf16", "not_utf8 malformed", lambda document: plain(document).decode().encode("utf-16")),
    kind("byte_order_mark", "malformed not_utf8", lambda d: b"\xef\xbb\xbf" + plain(d)),
    kind("deep", "malformed used", _nested),
    kind("duplicate_key", "duplicate_key used", _spliced(b'"id"', b'"id":"other","id"')),
    kind("nan", "not_finite malformed used", _spliced(b'"at":', b'"more":NaN,"at":')),
    kind("infinite", "not_finite malformed used", _spliced(b'"at":', b'"more":1e999,"at":')),
    kind("lone_surrogate", "malformed bad_id used", _spliced(b'"id":"', b'"id":"\\ud800')),
    # Invalid fields.
    kind("version_2", "wrong_version", _with(v=2)),
    kind("version_text", "wrong_version wrong_type", _with(v="1")),
    kind("no_version", "missing_field", _without("v")),
    kind("no_id", "missing_field", _without("id")),
    kind("no_time", "missing_field", _without("at")),
    kind("id_number", "wrong_type", _with(id=17)),
    kind("id_empty", "bad_id", _with(id="")),
    kind("id_long", "bad_id", _with(id="i" * 201)),
    kind("id_line_break", "bad_id", _with(id="a\nb")),
    kind("id_zero_byte", "bad_id", _with(id="a\x00b")),
    kind("id_null", "wrong_type missing_field", _with(id=None)),
    kind("time_negative", "out_of_range", _with(at=-1)),
    kind("time_fraction", "wrong_type", _with(at=1.5)),
    kind("time_micros", "out_of_range", _with(at=1_760_000_000_000_000)),
    kind("unknown_field", "used", _with(note="seen", more={"a": [1, 2]})),
    kind("spaced", "used", lambda document: json.dumps(document, indent=2).encode()),
    # Sizes and codecs.
    kind("over_limit", "too_large", _padded(OVER_LIMIT)),
    *(
        kind(f"huge_{name}", "too_large", _padded(HUGE), _codec(name), clients=("confluent",))
        for name in CODECS
    ),
    *(
        kind(f"small_{name}", "used", plain, _codec(name), clients=("confluent",))
        for name in CODECS
    ),
    kind("beyond_broker", REFUSED, _padded(BEYOND_BROKER), roles=("labels",), clients=_NO_KCAT),
    # Keys and partitions.
    kind("no_key", "used", plain, _key(lambda _: None), clients=_NO_KCAT),
    kind("other_key", "used", plain, _key(lambda odd: b"not " + odd.id.encode())),
    kind("binary_key", "used", plain, _key(lambda _: b"\x00\xff\xfe"), clients=_NO_KCAT),
    kind("huge_key", "used", plain, _key(lambda _: b"k" * (100 << 10)), clients=_NO_KCAT),
    kind(
        "huge_key_bad",
        "malformed",
        _raw(b"{"),
        _key(lambda _: b"k" * (100 << 10)),
        clients=_NO_KCAT,
    ),
    kind("wrong_partition", "wrong_partition", plain, _misplaced),
    # Headers.
    kind(
        "header_not_utf8",
        "used",
        plain,
        _headers((b"\xff\xfe", b"1")),
        clients=("aiokafka", "kcat"),
    ),
    kind(
        "header_not_utf8_bad",
        "malformed",
        _raw(b"{"),
        _headers((b"\xc3\x28", b"1")),
        clients=("aiokafka", "kcat"),
    ),
    kind("header_null", "used", plain, _headers((b"nothing", None)), clients=_NO_KCAT),
    kind("header_empty_key", "used", plain, _headers((b"", b"1")), clients=_ONE),
    kind("many_headers", "used", plain, _headers(*[(b"h", b"1")] * 500), clients=_NO_KCAT),
    kind("huge_header", "used", plain, _headers((b"h", b"1" * (400 << 10))), clients=_NO_KCAT),
    kind(
        "huge_header_bad",
        "malformed",
        _raw(b"{"),
        _headers((b"h", b"1" * (400 << 10))),
        clients=_NO_KCAT,
    ),
    kind(
        "own_headers",
        "malformed",
        _raw(b"{"),
        _headers((b"hb-reason", b"\xff"), (b"hb-offset", b"x")),
    ),
    # Times.
    kind("stamp_none", "used", plain, _at(None, -1), clients=_ONE),
    kind("stamp_zero", "used unknown", plain, _at(None, 0), clients=_ONE),
    kind("stamp_2001", "used unknown", plain, _at(None, YEAR_2001), clients=_NO_KCAT),
    kind("stamp_ahead", "used", plain, _at(HOUR - 5 * MINUTE), clients=_NO_KCAT),
    kind("stamp_2100", f"used {REFUSED}", plain, _at(None, YEAR_2100), clients=_NO_KCAT),
    # Rows.
    kind("short_row", "wrong_dimension", _x(lambda x: x[:-1]), roles=ROWS),
    kind("long_row", "wrong_dimension", _x(lambda x: [*x, 0.5]), roles=ROWS),
    kind("row_text", "wrong_type", _x(lambda x: ["high", *x[1:]]), roles=ROWS),
    kind("row_null", "used", _x(lambda x: [None, *x[1:]]), roles=ROWS),
    kind("row_blank", "used", _x(lambda x: ["NA", *x[1:]]), roles=ROWS),
    kind("row_bool", "wrong_type", _x(lambda x: [True, *x[1:]]), roles=ROWS),
    kind("row_object", "extra_feature", _x(lambda _: {"unheard": 1.0}), roles=ROWS),
    kind("row_number", "wrong_type", _x(lambda _: 5), roles=ROWS),
    kind("row_extreme", "used", _x(lambda x: [1e308, *x[1:]]), roles=ROWS),
    kind(
        "row_integer", "used not_finite out_of_range", _x(lambda x: [10**300, *x[1:]]), roles=ROWS
    ),
    kind("row_infinite", "not_finite malformed", _x(lambda x: [float("inf"), *x[1:]]), roles=ROWS),
    # Names.
    kind("unknown_label", "unknown_label", _with(label="unsure"), roles=("labels", *COUNTING)),
    kind("label_number", "wrong_type", _with(label=1), roles=("labels", *COUNTING)),
    kind("unknown_learner", "unknown_learner", _with(learner="nobody"), roles=("predictions",)),
    kind("unknown_rule", "unknown_rule", _with(rule="by_heart"), roles=COUNTING),
    kind("unknown_vote", "unknown_label", _with(votes={"benign": "unsure"}), roles=COUNTING),
    kind(
        "many_votes",
        "unknown_rule",
        _with(votes={f"r{i}": "benign" for i in range(5_000)}),
        roles=COUNTING,
    ),
    kind("cube_beyond", "out_of_range", _with(cube="9223372036854775808"), roles=COUNTING),
    kind("cube_text", "out_of_range", _with(cube="one"), roles=COUNTING),
    kind("phase_far", "out_of_range", _with(phase=9_000), roles=("feedback",)),
    kind("accuracy_two", "out_of_range", _with(accuracy=2.0), roles=("predictions",)),
    kind(
        "odds_of_three",
        "wrong_dimension",
        _with(log_odds=[1.0, 2.0, 3.0]),
        roles=("predictions", "feedback"),
    ),
    kind("others_of_three", "wrong_dimension", _with(others=[1.0, 2.0, 3.0]), roles=("feedback",)),
    # On the outputs.
    kind("output_text", UNREAD, _raw(b"no record"), roles=("diagnoses", "deadletter")),
    kind("output_tombstone", UNREAD, _raw(None), roles=("diagnoses", "deadletter")),
    kind(
        "output_header",
        UNREAD,
        _raw(b"{}"),
        _headers((b"\xff", b"1")),
        roles=("diagnoses", "deadletter"),
        clients=("aiokafka", "kcat"),
    ),
)

KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}
BULKY = frozenset(
    {
        "over_limit",
        "beyond_broker",
        "huge_header",
        "huge_header_bad",
        "huge_key",
        "huge_key_bad",
        "many_votes",
        "huge_gzip",
        "huge_snappy",
        "huge_lz4",
        "huge_zstd",
    }
)
"""Kinds of which a few are enough: each record is as large as thousands of others."""


def odd_records(site: Site, count: int, seed: int) -> Iterator[tuple[str, Odd]]:
    """Yield `count` records of all kinds in turn, each with the client that will write it."""
    random = Random(seed)  # noqa: S311 - a seed that repeats a run, not a secret
    left = dict.fromkeys(BULKY, 1 + count // 1000)
    turns = {name: cycle(kind.clients) for name, kind in KINDS.items()}
    roles = {name: cycle(kind.roles) for name, kind in KINDS.items()}
    number = 0
    while number < count:
        names = [name for name in KINDS if left.get(name, 1) > 0]
        random.shuffle(names)
        for name in names[: count - number]:
            left[name] = left.get(name, 1) - (name in BULKY)
            record = _made(KINDS[name], next(roles[name]), seed, number, site)
            yield next(turns[name]), record
            number += 1


def _made(kind: Kind, role: str, seed: int, number: int, site: Site) -> Odd:
    name = f"odd-{seed}-{number}"
    value = kind.value({**site.documents.get(role, {}), "id": name})
    record = Odd(number, kind.name, site.topics[role], name, name.encode(), value)
    record = kind.shape(record, site)
    if number_of(record.key, ()) is None:
        return _replaced(record, headers=(*record.headers, (NUMBER_HEADER, b"%d" % number)))
    return record


def number_of(key: bytes | None, headers: Sequence[tuple[str, bytes | None]]) -> int | None:
    """Return the number of an odd record that was read back, None for any other record."""
    named = _NUMBER.search(key or b"")
    if named:
        return int(named[1])
    number = dict(headers).get(NUMBER_HEADER.decode())
    return None if number is None else int(number)
