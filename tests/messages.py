"""Hypothesis strategies for what may arrive on a topic: good records, and every kind of bad one."""

import json
from copy import deepcopy

from hypothesis import strategies as st

from schemas.kinds import MAX_CUBE, MAX_INTEGER, MAX_MILLIS
from schemas.records import Context, Diagnosis, Feedback, Instance, Label, Opinion, Prediction
from schemas.rows import Feature
from schemas.writing import encode

LABELS = ["benign", "malignant", "a:b"]
FEATURES = [Feature("age"), Feature("sex", ("f", "m")), Feature("dose: mg")]
PLAIN_FEATURES = [Feature("p"), Feature("q")]

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
ids = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=200)
names = st.one_of(st.sampled_from([*LABELS, "imaging", "r", 'é:\\"ü']), texts)
millis = st.integers(0, MAX_MILLIS)
counts = st.integers(0, MAX_INTEGER)
cubes = st.integers(0, MAX_CUBE).map(str)
finite = st.floats(allow_nan=False, allow_infinity=False)
shares = st.none() | st.floats(0, 1)
votes = st.none() | st.dictionaries(names, names, max_size=3)
rows = st.one_of(
    st.lists(finite | names, max_size=4).map(tuple),
    st.dictionaries(names, finite | names, max_size=4),
    st.fixed_dictionaries({f.name: finite if f.categories is None else names for f in FEATURES}),
    st.tuples(finite, st.sampled_from("fm"), finite),
    st.fixed_dictionaries({"p": finite, "q": finite}),
    st.tuples(finite, finite),
)
odds = st.none() | st.lists(finite, min_size=1, max_size=3).map(tuple)
sure = {"accuracy": shares, "low": shares, "high": shares, "epsilon": st.none() | st.floats(0, 9)}
opinions = st.builds(
    Opinion, label=names, rule=names, exploring=st.booleans(), trials=counts, **sure
)
counting = {"phase": counts, "cube": cubes, "rule": names, "votes": votes, "at": millis}
records = st.one_of(
    st.builds(Instance, ids, rows, millis),
    st.builds(Context, ids, rows, millis),
    st.builds(Label, ids, names, millis),
    st.builds(
        Prediction,
        id=ids,
        learner=names,
        label=names,
        exploring=st.booleans(),
        trials=counts,
        log_odds=odds,
        **counting,
        **sure,
    ),
    st.builds(
        Diagnosis,
        id=ids,
        label=names,
        complete=st.booleans(),
        missing=st.lists(names, max_size=2).map(tuple),
        mode=names,
        weights=st.dictionaries(names, st.floats(0, 1), max_size=3),
        learners=st.dictionaries(names, opinions, max_size=2),
        at=millis,
    ),
    st.builds(
        Feedback,
        id=ids,
        label=names,
        predicted=names,
        others=odds,
        log_odds=odds,
        **counting,
    ),
)


class Pairs(list):
    """A JSON object as a list of pairs, so that a key can come twice."""


def as_pairs(value):
    if isinstance(value, dict):
        return Pairs((key, as_pairs(item)) for key, item in value.items())
    return [as_pairs(item) for item in value] if isinstance(value, list) else value


def write(value, space="", escape=False) -> str:
    if isinstance(value, Pairs):
        inner = [f"{text(k, escape)}{space}:{space}{write(v, space, escape)}" for k, v in value]
        return "{" + space + f"{space},{space}".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ",".join(write(item, space, escape) for item in value) + "]"
    return text(value, escape) if isinstance(value, str) else json.dumps(value)


def text(value: str, escape: bool) -> str:
    written = json.dumps(value, ensure_ascii=escape)
    return written.replace(":", "\\u003a") if escape else written


def places(node):
    """Yield every object and array of a document."""
    if isinstance(node, list):
        yield node
        for item in node:
            yield from places(item[1] if isinstance(node, Pairs) else item)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(2**62, 2**70),
    st.just(10**400),
    st.floats(),
    names,
    st.text(max_size=3),
    st.sampled_from(["0", "-1", "1e3", "9" * 19, "9" * 20, "\x00", "a\n", "٣", "x" * 201]),
)
documents = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(st.tuples(texts, inner), max_size=4).map(Pairs)
        | inner.map(lambda entry: Pairs([("a", entry), ("a", entry)]))
    ),
    max_leaves=8,
)


@st.composite
def mutated(draw):
    """A valid record with some of its structure changed, in some way of writing it."""
    document = as_pairs(json.loads(encode(draw(records))))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.sampled_from(list(places(document))))
        spot = draw(st.integers(0, max(0, len(place) - 1)))
        action = draw(st.sampled_from(["drop", "double", "replace", "add", "swap"]))
        if action == "add" or not place:
            entry = deepcopy(draw(documents))
            place.append((draw(texts), entry) if isinstance(place, Pairs) else entry)
        elif action == "drop":
            del place[spot]
        elif action == "double":
            place.append(deepcopy(place[spot]))
        elif action == "replace":
            entry = deepcopy(draw(documents))
            place[spot] = (place[spot][0], entry) if isinstance(place, Pairs) else entry
        else:
            place.insert(0, place.pop(spot))
    return write(document, draw(st.sampled_from(["", " ", "\n\t"])), draw(st.booleans())).encode()


@st.composite
def garbled(draw):
    """A valid record with some of its bytes changed."""
    value = bytearray(encode(draw(records)))
    tokens = st.sampled_from(
        [
            b'"',
            b":",
            b",",
            b"{",
            b"}",
            b"[",
            b"]",
            b"\\",
            b"NaN",
            b"1e999",
            b"\xff",
            b"\x00",
            b"null",
        ]
    )
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(value)))
        end = draw(st.integers(start, min(len(value), start + 6)))
        value[start:end] = draw(tokens | st.binary(max_size=3) | st.just(bytes(value[:40])))
    return bytes(value[: draw(st.integers(0, len(value)))] if draw(st.booleans()) else value)


values = st.one_of(
    st.none(),
    st.binary(max_size=40),
    documents.map(lambda document: write(document).encode(errors="surrogatepass")),
    mutated(),
    garbled(),
    records.map(encode),
)
batches = st.lists(values, max_size=6)
