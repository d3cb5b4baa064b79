"""What readers give back: records, columns and rows, with their positions."""

import json
import sys

import pytest

from schemas.codec import encode
from schemas.examples import EXAMPLES
from schemas.labels import LabelReader
from schemas.readers import Reader
from schemas.records import DeadLetter, Feedback, Label, Prediction
from schemas.rows import Feature, RowReader

RECORDS = {kind: record for kind, record in EXAMPLES.items() if kind is not DeadLetter}


def value(**fields):
    return json.dumps({"v": 1, "id": "a", "at": 5} | fields).encode()


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_records_are_read_however_they_are_written(kind):
    record = RECORDS[kind]
    compact = encode(record)
    document = json.loads(compact)
    spellings = [
        compact,
        json.dumps(document).encode(),
        json.dumps(document, indent=2).encode(),
        json.dumps(dict(reversed(document.items()))).encode(),
        json.dumps(document | {"added later": {"a": [1, None, "b:c"]}}).encode(),
        compact.replace(b"a17", b"\\u0061\\u0031\\u0037"),
    ]
    batch = Reader(kind).read(spellings)
    assert batch.errors == []
    assert batch.positions == list(range(len(spellings)))
    assert batch.records == [record] * len(spellings)


def test_records_cannot_be_changed():
    with pytest.raises(AttributeError):
        EXAMPLES[Label].label = "benign"


def test_what_is_unknown_may_be_absent_or_null():
    document = json.loads(encode(EXAMPLES[Prediction]))
    optional = ["accuracy", "low", "high", "epsilon", "votes", "log_odds"]
    absent = {k: v for k, v in document.items() if k not in optional}
    null = document | dict.fromkeys(optional)
    batch = Reader(Prediction).read([json.dumps(absent).encode(), json.dumps(null).encode()])
    assert batch.records[0] == batch.records[1]
    assert batch.records[0].accuracy is None
    assert encode(batch.records[1]) == json.dumps(absent, separators=(",", ":")).encode()


def test_positions_and_errors_are_those_of_the_batch():
    reader = LabelReader(["benign", "malignant"])
    batch = reader.read(
        [
            value(label="malignant"),
            b"{",
            value(id="b", label="unsure"),
            value(id="c\n", label="benign"),
            value(id="d", label="benign", at=6),
            None,
        ]
    )
    assert batch.ids == ["a", "d"]
    assert batch.labels == [1, 0]
    assert batch.at == [5, 6]
    assert batch.positions == [0, 4]
    assert [(position, error.reason.value) for position, error in batch.errors] == [
        (1, "malformed"),
        (2, "unknown_label"),
        (3, "bad_id"),
        (5, "empty"),
    ]


def test_an_empty_batch_is_empty():
    for reader in (LabelReader(["a", "b"]), RowReader([Feature("p")]), Reader(Feedback)):
        batch = reader.read([])
        assert batch.positions == []
        assert batch.errors == []


def test_rows_come_in_the_order_of_the_features_from_both_forms():
    reader = RowReader([Feature("age"), Feature("site: side", ("left", "right")), Feature("größe")])
    named = {"größe": -2, "age": 1e3, "site: side": "left"}
    batch = reader.read([value(x=[41, "right", 0.5]), value(id="urn:b:1", x=named, at=9)])
    assert batch.errors == []
    assert batch.ids == ["a", "urn:b:1"]
    assert batch.at == [5, 9]
    assert [list(row) for row in batch.rows] == [[41.0, 1.0, 0.5], [1000.0, 0.0, -2.0]]
    assert all(type(number) is float for row in batch.rows for number in row)


def test_many_features_fit_into_the_default_limit():
    features = [Feature(f"feature {j}") for j in range(3_000)]
    row = [j + 1 / 3 for j in range(3_000)]
    named = dict(zip((f.name for f in features), row, strict=True))
    batch = RowReader(features).read([value(x=row), value(x=named)])
    assert batch.errors == []
    assert [list(r) for r in batch.rows] == [row, row]


@pytest.mark.parametrize(
    "features",
    [[], [Feature("p"), Feature("p")]],
    ids=["none", "twice the same name"],
)
def test_a_reader_of_rows_needs_different_features(features):
    with pytest.raises(ValueError, match="needs features"):
        RowReader(features)


@pytest.mark.parametrize("name", ["", "p" * 201])
def test_names_that_no_record_may_hold_are_refused_beforehand(name):
    with pytest.raises(ValueError, match="1 to 200 characters"):
        Feature(name)
    with pytest.raises(ValueError, match="1 to 200 characters"):
        Feature("p", ("a", name))


@pytest.mark.parametrize("name", ['a "b"', "a\\b", "a\nb"])
def test_names_of_features_need_no_escapes(name):
    with pytest.raises(ValueError, match="quotes, backslashes or line breaks"):
        Feature(name)
    assert RowReader([Feature("p", (name,))]).read([value(x=[name])]).rows == [[0.0]]


def test_names_that_are_not_known_beforehand_are_taken_as_they_are():
    record = EXAMPLES[Prediction]
    assert Reader(Prediction).one(encode(record)) == record


def test_a_stack_that_is_nearly_full_never_makes_a_reader_raise():
    """How deep a decoder may go is up to the Python stack, or to its own, by the Python version."""
    flat = value(label="benign")
    nested = value(label="benign", more=json.loads("[" * 100 + "]" * 100))
    reader = LabelReader(["benign"])

    def deeper(frames: int):
        return reader.read([flat, nested]) if frames == 0 else deeper(frames - 1)

    assert deeper(0).positions == [0, 1]
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    batch = deeper(sys.getrecursionlimit() - depth - 60)
    assert batch.positions in ([0], [0, 1])
    assert [error.reason.value for _, error in batch.errors] in ([], ["malformed"])
