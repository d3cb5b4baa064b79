"""What readers give back: records, columns and rows, with their positions."""

import json

import numpy as np
import pytest

from schemas.examples import EXAMPLES
from schemas.kinds import MAX_DEPTH
from schemas.reading import LabelReader, Reader
from schemas.records import DeadLetter, Feedback, Label, Prediction
from schemas.refusals import Reason
from schemas.rows import Feature, RowReader
from schemas.writing import encode

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
    reader = RowReader([Feature("age"), Feature("site: side", ("left", "süß")), Feature("größe")])
    named = {"größe": -2, "age": 1e3, "site: side": "left"}
    batch = reader.read([value(x=[41, "süß", 0.5]), value(id="urn:b:1", x=named, at=9)])
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


def test_a_feature_with_categories_has_at_least_one():
    with pytest.raises(ValueError, match="at least one"):
        Feature("p", ())


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


def test_of_two_equal_keys_the_last_counts():
    labels = LabelReader(["b", "c"]).read([b'{"v":1,"id":"a","label":"b","at":5,"label":"c"}'])
    assert labels.labels == [1]
    doubled = b'{"v":1,"v":1,"id":"a","x":{"p":1,"p":2},"at":5,"at":6}'
    batch = RowReader([Feature("p")]).read([doubled])
    assert (batch.rows, batch.at) == ([(2.0,)], [6])
    record = json.loads(encode(EXAMPLES[Prediction]))
    del record["votes"]
    voted = json.dumps(record).encode()[:-1] + b', "votes": {"r": "benign", "r": "malignant"}}'
    assert Reader(Prediction).one(voted).votes == {"r": "malignant"}


@pytest.mark.parametrize(
    "value",
    [
        b'{"v":1,"id":7,"id":"a","label":"b","at":5}',
        b'{"v":1,"id":"a","id":7,"label":"b","at":5}',
        b'{"v":2,"v":1,"id":"a","label":"b","at":5}',
        b'{"v":1,"v":2,"id":"a","label":"b","at":5}',
    ],
)
def test_each_of_two_equal_keys_is_checked(value):
    assert Reader(Label).fault(value) is not None


@pytest.mark.parametrize("field", [b"1e999", b'"\xed\xa0\x80"', b'{"a":1,"a":1}', b"[[[]],{}]"])
def test_fields_that_a_record_does_not_have_are_skipped(field):
    read = Reader(Label).one(b'{"v":1,"id":"a","more":' + field + b',"label":"b","at":5}')
    assert read == Label("a", "b", 5)


def nested(depth, filling=b""):
    """A label with another field, so that arrays and objects are nested so deep altogether."""
    arrays, objects = (depth - 1) // 2, depth // 2
    opening, closing = b"[" * arrays + b'{"a":' * objects, b"}" * objects + b"]" * arrays
    return b'{"v":1,"id":"a","label":"b","at":5,"z":' + opening + b"0" + closing + filling + b"}"


BRACKETS = b',"y":"' + b'[{\\"' * MAX_DEPTH + b'","x":[' + b"[]," * MAX_DEPTH + b"[]]"


@pytest.mark.parametrize("filling", [b"", BRACKETS], ids=["alone", "with brackets in a text"])
def test_how_deep_a_value_may_be_nested_is_the_same_on_every_python(filling):
    for reader in (Reader(Label), LabelReader(["b"])):
        good = [nested(1), nested(MAX_DEPTH, filling), nested(MAX_DEPTH - 1, filling)]
        assert reader.read(good).errors == []
        for depth in (MAX_DEPTH + 1, 900, 1_100, 5_000, 60_000):
            batch = reader.read([*good, nested(depth, filling)])
            assert batch.positions == [0, 1, 2]
            [(_, error)] = batch.errors
            assert error.reason is Reason.MALFORMED
            assert error.detail == f"expected arrays and objects nested at most {MAX_DEPTH} deep"


@pytest.mark.parametrize("value", [b"[" * 100_000, b'{"a":' * 50_000, b"[" * 501, b"[" * 500])
def test_what_is_never_closed_is_refused_on_every_python(value):
    for reader in (Reader(Label), RowReader([Feature("p")])):
        assert reader.fault(value).reason is Reason.MALFORMED


@pytest.mark.parametrize(
    "x",
    [
        b'[null,"m",2]', b'["NA","m",2]', b'[" nan ","m",2]', b'["?","m",2]', b'["-","m",2]',
        b'["","m",2]', b'{"sex":"m","size":2}', b'{"age":null,"sex":"m","size":2}',
    ],
)  # fmt: skip
def test_a_feature_may_be_missing_in_every_way_that_files_write_it(x):
    reader = RowReader([Feature("age"), Feature("sex", ("f", "m")), Feature("size")])
    whole = b'{"v":1,"id":"b","x":[3,"f",4],"at":5}'
    read = reader.read([whole, b'{"v":1,"id":"a","x":' + x + b',"at":5}'])
    assert read.errors == []
    assert read.rows[0] == [3.0, 0.0, 4.0]
    assert np.array_equal(read.rows[1], [np.nan, 1.0, 2.0], equal_nan=True)


@pytest.mark.parametrize("category", [b'"x"', b'"NA"', b"null", b'""'])
def test_a_category_that_is_not_listed_is_missing(category):
    reader = RowReader([Feature("sex", ("f", "m")), Feature("stage", ("-", "+"))])
    read = reader.read([b'{"v":1,"id":"a","x":[' + category + b',"-"],"at":5}'])
    assert read.errors == []
    assert np.array_equal(read.rows[0], [np.nan, 0.0], equal_nan=True)


def test_a_record_may_say_whose_visit_it_is():
    reader = RowReader([Feature("p")])
    batch = reader.read([value(x=[1.0], subject="s5"), value(x=[None], subject="s6"), value(x=[2])])
    assert batch.subjects == ["s5", "s6", None]


@pytest.mark.parametrize("subject", ["", "a\nb", "x" * 201])
def test_a_subject_is_a_token_like_an_id(subject):
    (_, error), *_ = RowReader([Feature("p")]).read([value(x=[1.0], subject=subject)]).errors
    assert error.reason is Reason.BAD_ID
    assert "subject" in str(error)
    assert subject not in str(error) or not subject
