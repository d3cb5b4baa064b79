"""Records: whatever comes in, a reader gives either the record that was meant or a reason code."""

import json
import re
from math import isinf

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from schemas.examples import EXAMPLES
from schemas.json_schemas import json_schema
from schemas.kinds import CONTROL_CHARACTERS, has_control_characters
from schemas.reading import LabelReader, Reader
from schemas.records import (
    Context,
    DeadLetter,
    Diagnosis,
    Erasure,
    Feedback,
    Instance,
    Label,
    Prediction,
    Reasons,
)
from schemas.refusals import Reason
from schemas.rows import RowReader
from schemas.writing import encode, encode_all
from tests.messages import (
    FEATURES,
    LABELS,
    PLAIN_FEATURES,
    Pairs,
    as_pairs,
    batches,
    documents,
    garbled,
    mutated,
    records,
    write,
)

TYPES = [Instance, Prediction, Reasons, Context, Label, Diagnosis, Feedback, Erasure]
READERS = {
    **{kind.__name__: Reader(kind) for kind in TYPES},
    "known": Reader(Prediction, known={"label": LABELS, "learner": ["imaging"], "rule": ["r"]}),
    "labels": LabelReader(LABELS),
    "rows": RowReader(FEATURES),
    "plain rows": RowReader(PLAIN_FEATURES),
}


@given(records)
def test_what_is_written_is_read(record):
    value = encode(record)
    assert Reader(type(record)).one(value) == record
    assert encode_all([record, record]) == [value, value]


@settings(max_examples=250)
@given(batches)
@example([b'{"v":1,"id":"a","label":"b","at":5,"z":' + b"[" * 300 + b"]" * 300 + b"}"])
@example([b'{"v":1,"id":"a","label":"b","at":5,"z":' + b"[" * 5000 + b"]" * 5000 + b"}"])
def test_a_batch_reads_as_its_values_one_by_one(batch):
    for reader in READERS.values():
        whole, single = reader.read(batch), [reader.read([value]) for value in batch]
        for column in set(type(whole).__dataclass_fields__) - {"positions", "errors"}:
            assert getattr(whole, column) == [
                x for reading in single for x in getattr(reading, column)
            ]
        assert whole.positions == [i for i, reading in enumerate(single) if not reading.errors]
        assert [(i, str(error)) for i, error in whole.errors] == [
            (i, str(error)) for i, reading in enumerate(single) for _, error in reading.errors
        ]


@given(mutated() | garbled())
def test_a_label_is_read_as_any_json_parser_would_read_it(value):
    for record in READERS["Label"].read([value]).records:
        document = json.loads(value.decode(errors="replace"))
        assert document | msgspec.to_builtins(record) == document


@given(st.lists(mutated(), max_size=4))
def test_rows_are_finite_or_missing_and_as_long_as_the_features(batch):
    for name in ("rows", "plain rows"):
        reader = READERS[name]
        for row in reader.read(batch).rows:
            assert len(row) == len(reader.features)
            assert all(type(number) is float and not isinf(number) for number in row)


@given(st.sampled_from(TYPES), documents | mutated().map(json.loads))
def test_the_published_schema_accepts_what_the_reader_accepts(kind, document):
    value = write(as_pairs(plain(document))).encode(errors="surrogatepass")
    fault = READERS[kind.__name__].fault(value)
    if fault is not None and fault.reason is Reason.NOT_FINITE:
        return  # JSON Schema speaks of documents in which that cannot occur
    valid = Draft202012Validator(json_schema(kind.__name__.lower())).is_valid(json.loads(value))
    # The schema takes 5.0 for an integer and cannot bound a number that is written as text.
    assert valid or fault is not None
    if fault is not None and valid:
        assert fault.reason in {
            Reason.WRONG_TYPE,
            Reason.WRONG_VERSION,
            Reason.OUT_OF_RANGE,
            Reason.MALFORMED,
        }


def plain(value):
    """A document without doubled keys."""
    if isinstance(value, Pairs):
        return {key: plain(item) for key, item in value}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


@given(
    records, st.dictionaries(st.text(min_size=20, max_size=30), documents.map(plain), max_size=3)
)
def test_unknown_fields_are_ignored(record, extra):
    document = {**json.loads(encode(record)), **extra}
    try:
        value = json.dumps(document, allow_nan=False).encode()
    except ValueError:
        return
    reader = READERS[type(record).__name__]
    fault = reader.fault(value)
    if fault is None:
        assert reader.one(value) == record
    else:
        assert fault.reason is Reason.MALFORMED


SECRET = "sEcReT-31.4159"
secrets = st.sampled_from([SECRET, [SECRET], {SECRET: SECRET}, 31.4159, {"a": 314159}, [31.4159]])


@given(st.sampled_from(list(EXAMPLES)), st.data())
def test_errors_never_show_what_was_in_the_record(kind, data):
    if kind is DeadLetter:
        return
    document = json.loads(encode(EXAMPLES[kind]))
    for field in data.draw(st.lists(st.sampled_from([*document, SECRET]), min_size=1)):
        document[field] = data.draw(secrets)
    value = json.dumps(document).encode()
    for name in (kind.__name__, "known", "labels", "rows"):
        for cut in (value, value[:-2]):
            for _, error in READERS[name].read([cut]).errors:
                assert SECRET not in str(error)
                assert "314159" not in str(error).replace(".", "")


@given(st.text(max_size=12))
def test_control_characters_are_those_of_the_published_pattern(name):
    assert has_control_characters(name) == bool(re.search(CONTROL_CHARACTERS, name))
