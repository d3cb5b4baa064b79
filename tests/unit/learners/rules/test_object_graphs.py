"""Objects as plain data: what comes back, and what is refused."""

import json
import pickle
import zlib
from collections import Counter, OrderedDict, defaultdict, deque
from functools import partial
from random import Random

import numpy as np
import pytest
from river import linear_model, naive_bayes, neighbors, optim, stats, tree

from learners.errors import LearnerError
from learners.rules.object_graphs import Vocabulary, read, write

VOCABULARY = Vocabulary()
OBJECT = ["object", 0, [], []]


def again(thing):
    return read(write(thing, VOCABULARY), VOCABULARY)


def forged(nodes, shapes=()):
    return zlib.compress(json.dumps([[0], shapes, nodes]).encode())


def refused(stored):
    with pytest.raises(LearnerError) as caught:
        read(stored, VOCABULARY)
    return str(caught.value)


@pytest.mark.parametrize(
    "thing",
    [
        None, True, 2**80, -0.0, float("inf"), "text", b"\x00\xff", [], (1, "a", (2,)), {1, 2},
        frozenset("ab"), {"a": [1], ("b", 2): None}, deque([1, 2], 5), Counter("abba"),
        OrderedDict(b=1, a=2), np.float64(0.1), np.int64(3), ["x", "x"],
    ],
)  # fmt: skip
def test_data_comes_back(thing):
    copy = again([thing])[0]
    assert type(copy) is type(thing)
    assert copy == thing
    if not isinstance(thing, set | frozenset):  # their order depends on the process's hash seed
        assert repr(copy) == repr(thing)


def test_arrays_generators_and_factories_come_back():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert again([array])[0].tobytes() == array.tobytes()
    generator, random = np.random.RandomState(7), Random(7)
    generator.normal(), random.random()
    same_generator, same_random = again([generator, random])
    assert same_generator.normal() == generator.normal()
    assert same_random.random() == random.random()
    counts = again([defaultdict(partial(stats.Mean))])[0]
    counts["a"].update(3.0)
    assert counts["a"].get() == 3.0


def test_what_is_shared_stays_shared_and_cycles_stay_cycles():
    shared = [1]
    around: list = [shared, shared]
    around.append(around)
    left, right, itself = copy = again(around)
    assert left is right
    assert itself is copy


def test_a_chain_longer_than_the_stack():
    chain: list = []
    for _ in range(5_000):
        chain = [chain]
    copy, depth = again(chain), 0
    while copy:
        copy, depth = copy[0], depth + 1
    assert depth == 5_000


@pytest.mark.parametrize(
    "model",
    [
        linear_model.SoftmaxRegression(),
        linear_model.PAClassifier(),
        naive_bayes.GaussianNB(),
        neighbors.KNNClassifier(),
        tree.SGTClassifier(),
        linear_model.LogisticRegression(optimizer=optim.Adam()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_with_methods_partials_and_compiled_parts(model):
    rng = np.random.default_rng(0)
    rows = [dict(zip("abc", row, strict=True)) for row in rng.normal(size=(60, 3)).tolist()]
    for row in rows[:40]:
        model.learn_one(row, row["a"] > 0)
    copy = again(model)
    for row in rows[40:]:
        assert copy.predict_proba_one(row) == model.predict_proba_one(row)
        copy.learn_one(row, row["a"] > 0)
        model.learn_one(row, row["a"] > 0)


class Own:
    """A class outside River."""


def test_a_class_of_an_allowed_package():
    with pytest.raises(LearnerError, match="test_object_graphs:Own is not part of a model"):
        write(Own(), VOCABULARY)
    allowed = Vocabulary(["tests"])
    assert type(read(write(Own(), allowed), allowed)) is Own


@pytest.mark.parametrize("thing", [print, len, lambda: 1, Own, object(), open, np.array([Own()])])
def test_code_and_strangers_cannot_be_stored(thing):
    with pytest.raises(LearnerError):
        write(thing, VOCABULARY)


@pytest.mark.parametrize(
    "name",
    [
        "os:system", "subprocess:Popen", "builtins:eval", "builtins:getattr", "builtins:exec",
        "river.datasets.base:RemoteDataset", "river.stream.cache:Cache", "river:datasets",
        "river.utils.pandas:importlib", "river.stats.base:abc.abc.sys.modules", "riverbed.tree:X",
        "river.tree.hoeffding_tree:collections.namedtuple", "copy:copy", "functools:reduce",
        "river.tree:HoeffdingTreeClassifier.__init__.__globals__", "", "no colon", 7, None,
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["name", "made", "called", "shape"])
def test_names_outside_the_vocabulary_are_refused(name, kind):
    if kind == "shape":
        assert refused(forged([OBJECT], [[name]]))
    else:
        assert refused(forged([[kind, name, [], []]]))


@pytest.mark.parametrize(
    "nodes",
    [
        [["reduce", "os:system", [], []]],
        [["_fill", None, [], []]],
        [["tuple", None, [[0]], []]],
        [["list", None, [], [[7]]]],
        [["dict", None, [], [1]]],
        [["array", ["|O", [1], "AAAAAAAAAAA="], [], []]],
        [["method", "update", [[1]], []], ["list", None, [], []]],
        [["method", "__init__", [[1]], []], ["called", "river.stats.mean:Mean", [], [None, None]]],
        [["called", "builtins:int", [], []]],
        [["partial", None, [3, [], []], []]],
        3, [], {},
    ],
)  # fmt: skip
def test_what_is_no_model_is_refused(nodes):
    assert refused(forged(nodes))


def test_attributes_that_python_gives_a_meaning_to_are_refused():
    shape = ["river.stats.mean:Mean", "__class__"]
    stored = forged([[*OBJECT[:3], [1]]], [shape])
    assert "an attribute that a model does not have" in refused(stored)


def test_a_model_that_was_cut_or_continued_is_refused():
    stored = write(tree.HoeffdingTreeClassifier(), VOCABULARY)
    for cut in range(1, 20):
        assert refused(stored[:-cut])
    assert refused(stored + b"\0")


def test_a_small_text_that_unpacks_to_a_large_one_is_refused():
    assert refused(zlib.compress(b"[[]," + b"[]," * (1 << 26) + b"[]]", level=9))


def test_a_pickle_and_noise_are_refused():
    assert refused(pickle.dumps(stats.Mean())) == "it does not read as one"
    assert refused(b"") == "it does not read as one"
    assert refused(write([1], VOCABULARY)[:-9]) == "it does not read as one"
