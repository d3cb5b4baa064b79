"""Objects of River as plain data and back: JSON that names classes and cannot hold code.

A pickle is a program: anyone who can write one can run anything where it is read. Here the stored
text is a list of nodes that can only say "an object of this class, with these attributes", and a
reader makes an object only of a class, or names a function, that `Vocabulary` knows: parts of
models in River, a few containers, arrays and generators of numbers. A text that names anything else
is refused before anything is made of it.

    atom        null, true, a number
    reference   [i]: the i-th node
    node        a text by itself, or a list that begins with its kind (see `_Writer`)

Shared objects stay shared and cycles stay cycles. Both directions work through a list of what is
left to do, so that no chain of objects is too long for Python's stack.
"""

import base64
import copy
import copyreg
import functools
import json
import random
import re
import types
import zlib
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np

from learners.errors import LearnerError
from learners.named_code import within

RIVER = (
    "_river_rust", "base", "cluster", "covariance", "drift", "dummy", "ensemble", "facto",
    "feature_extraction", "feature_selection", "forest", "imblearn", "linear_model", "metrics",
    "misc", "multiclass", "naive_bayes", "neighbors", "optim", "preprocessing", "proba", "rules",
    "sketch", "stats", "tree", "utils",
)  # fmt: skip
"""Packages of River that models are made of. None of them opens files, connections or processes;
its packages for data sets, streams, evaluation and foreign libraries are left out."""
_CONTAINERS = {
    f"{kind.__module__}:{kind.__qualname__}": kind
    for kind in (Counter, OrderedDict, defaultdict, deque, random.Random)
}
_FACTORIES = {
    f"builtins:{kind.__name__}": kind
    for kind in (bool, dict, float, frozenset, int, list, set, str, tuple)
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"copy:deepcopy": copy.deepcopy}
_FUNCTION_KINDS = (types.FunctionType, types.BuiltinFunctionType)
_FILLED = (list, set)
_FROZEN = (tuple, frozenset)
_CONTAINER_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (*_FILLED, *_FROZEN, dict)}
_OBJECTS = ("object", "made", "called", "name", "method", "partial")
_LARGEST = 1 << 27
"""At most this many bytes of text are unpacked: a small record must not fill the memory. A row of
state has 16 MiB at most, which is some 32 MiB of text."""
_ATOMS = frozenset((type(None), bool, int, float))
_NAME = re.compile(r"[A-Za-z_][\w.]{0,99}:[A-Za-z_][\w.]{0,99}")
_ATTRIBUTE = re.compile(r"(?!__)\w+")


class Vocabulary:
    """Which classes and functions a stored model may name.

    packages   packages besides River's whose classes it may name
    """

    def __init__(self, packages: Collection[str] = ()) -> None:
        self._packages = frozenset(packages)
        self._known: dict[str, Any] = {**_CONTAINERS, **_FACTORIES, **_FUNCTIONS}

    def name_of(self, value: Any) -> str:
        """Return the name of a class or function; LearnerError if it is not in the vocabulary."""
        name = f"{value.__module__}:{value.__qualname__}"
        if self.find(name) is not value:
            raise LearnerError(f"{name} cannot be stored with a model")
        return name

    def find(self, name: str) -> Any:
        """Return the class or function of a name; LearnerError if it is not in the vocabulary."""
        if name not in self._known:
            self._known[name] = self._import(name)
        return self._known[name]

    def part(self, name: str) -> Any:
        """Return a class that objects are made of."""
        kind = self.find(name)
        if not isinstance(kind, type) or name in _FACTORIES:
            raise LearnerError(f"{name} is not part of a model")
        return kind

    def _import(self, name: str) -> Any:
        if not _NAME.fullmatch(name):
            raise LearnerError("it does not name its parts as a model does")
        module, _, path = name.partition(":")
        package, _, below = module.partition(".")
        of_river = package == "river" and below.partition(".")[0] in RIVER
        if not of_river and not within(module, self._packages):
            raise LearnerError(f"{name} is not part of a model")
        try:
            value = functools.reduce(getattr, path.split("."), import_module(module))
        except (ImportError, AttributeError):
            raise LearnerError(f"{name} is not in the installed version") from None
        # What a module imported from elsewhere is not its own.
        kinds = (type, *_FUNCTION_KINDS) if of_river else type
        if not isinstance(value, kinds) or value.__module__ != module:
            raise LearnerError(f"{name} is not part of a model")
        return value


def write(root: Any, vocabulary: Vocabulary) -> bytes:
    """Return an object with all that it refers to; LearnerError if a part cannot be stored."""
    return _Writer(vocabulary).write(root)


def read(stored: bytes, vocabulary: Vocabulary) -> Any:
    """Return the object again; LearnerError if it names anything outside the vocabulary."""
    try:
        return _Reader(vocabulary, json.loads(_unpacked(stored))).read()
    except LearnerError:
        raise
    except Exception:  # noqa: BLE001 - anybody may have written it; only River's own code has run
        raise LearnerError("it does not read as one") from None


def _unpacked(stored: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(stored, _LARGEST)
    if not unpacker.eof or unpacker.unused_data:  # the checksum stands at the end
        raise ValueError
    return text


class _Writer:
    """Writes nodes `[kind, what, before, after]`.

    what     plain data: a name, a shape, an array's bytes
    before   references to what must be there before the thing itself can be made
    after    references to what is put into it, which may refer to the thing again
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._nodes: list[Any] = []
        self._places: dict[Any, list[int]] = {}
        self._todo: list[Any] = []
        self._alive: list[Any] = []  # an id belongs to its object only as long as that lives
        self._shapes: dict[tuple[Any, ...], int] = {}

    def write(self, root: Any) -> bytes:
        start = self._reference(root)
        while self._todo:
            value = self._todo.pop()
            self._nodes[self._places[id(value)][0]] = self._node(value)
        shapes = [[self._vocabulary.name_of(kind), *names] for kind, *names in self._shapes]
        text = json.dumps([start, shapes, self._nodes], separators=(",", ":"))
        if len(text) > _LARGEST:
            raise LearnerError(f"the model is too large to be stored: {len(text)} bytes of text")
        return zlib.compress(text.encode(), level=1)

    def _reference(self, value: Any) -> Any:
        kind = type(value)
        if kind in _ATOMS:
            return value
        key = value if kind is str else id(value)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = [len(self._nodes)]
            self._nodes.append(value)
            if kind is not str:
                self._alive.append(value)
                self._todo.append(value)
        return place

    def _references(self, values: Iterable[Any]) -> list[Any]:
        return [self._reference(value) for value in values]

    def _node(self, value: Any) -> list[Any]:
        kind = type(value)
        if kind in _FILLED or kind is dict:
            items = _flat(value.items()) if kind is dict else value
            return [kind.__name__, None, [], self._references(items)]
        if kind in _FROZEN:
            return [kind.__name__, None, self._references(value), []]
        return self._code(value) or self._data(value) or self._object(value)

    def _code(self, value: Any) -> list[Any] | None:
        if isinstance(value, types.MethodType):
            return ["method", value.__name__, [self._reference(value.__self__)], []]
        if isinstance(value, functools.partial):
            parts = value.func, value.args, value.keywords
            return ["partial", None, self._references(parts), []]
        if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
            return ["name", self._vocabulary.name_of(value), [], []]
        return None

    def _data(self, value: Any) -> list[Any] | None:
        if isinstance(value, bytes):
            return ["bytes", _as_text(value), [], []]
        if isinstance(value, np.random.RandomState):
            return ["generator", None, [self._reference(value.get_state(legacy=False))], []]
        if not isinstance(value, np.generic | np.ndarray):
            return None
        if value.dtype.kind not in "biufSU":
            raise LearnerError(f"an array of {value.dtype} cannot be stored with a model")
        kind = "number" if isinstance(value, np.generic) else "array"
        content = [value.dtype.str, value.shape, _as_text(np.ascontiguousarray(value).tobytes())]
        return [kind, content, [], []]

    def _object(self, value: Any) -> list[Any]:
        """Write an object in the way that it says it can be made again."""
        reduced = value.__reduce_ex__(4)
        maker, arguments, *rest = reduced if isinstance(reduced, tuple) else (None, ())
        state, items, pairs = (*rest, None, None, None)[:3]
        plain = maker is copyreg.__newobj__  # type: ignore[attr-defined]
        kind, arguments = (arguments[0], arguments[1:]) if plain else (maker, arguments)
        if kind is not type(value):
            raise LearnerError(f"a {type(value).__qualname__} cannot be stored with a model")
        if plain and not arguments and items is pairs is None and type(state) is dict:
            shape = self._shapes.setdefault((kind, *state), len(self._shapes))
            return ["object", shape, [], self._references(state.values())]
        after = self._references((state, list(items or ()), list(_flat(pairs or ()))))
        name = self._vocabulary.name_of(kind)
        return ["made" if plain else "called", name, self._references(arguments), after]


class _Reader:
    def __init__(self, vocabulary: Vocabulary, stored: Any) -> None:
        self._vocabulary = vocabulary
        self._start, shapes, self._nodes = stored
        self._shapes = [(vocabulary.part(kind), names) for kind, *names in shapes]
        self._objects: dict[int, Any] = {}

    def read(self) -> Any:
        """Make every node: what comes before it, itself, what comes after it, what fills it."""
        begun: set[int] = set()
        todo = [(reference, 0) for reference in _places([self._start])]
        while todo:
            place, stage = todo.pop()
            node = self._nodes[place]
            if stage == 0 and place in begun:
                continue
            if stage == 0:
                begun.add(place)
                before = [] if isinstance(node, str) else node[2]
                todo += [(place, 1), *((i, 0) for i in _places(before))]
            elif stage == 1:
                self._objects[place] = node if isinstance(node, str) else self._make(node)
                after = [] if isinstance(node, str) else node[3]
                todo += [(place, 2), *((i, 0) for i in _places(after))] if after else []
            else:
                self._fill(node, self._objects[place])
        return self._value(self._start)

    def _value(self, reference: Any) -> Any:
        return self._objects[reference[0]] if isinstance(reference, list) else reference

    def _values(self, references: Iterable[Any]) -> list[Any]:
        return [self._value(reference) for reference in references]

    def _make(self, node: list[Any]) -> Any:
        kind, content, before, _ = node
        arguments = self._values(before)
        if kind in _CONTAINER_KINDS:
            return _CONTAINER_KINDS[kind](arguments)
        return (
            self._make_object(kind, content, arguments)
            if kind in _OBJECTS
            else _data(kind, content, arguments)
        )

    def _make_object(self, kind: str, content: Any, arguments: list[Any]) -> Any:
        match kind:
            case "object":
                model_class = self._shapes[content][0]
                return model_class.__new__(model_class)
            case "made":
                model_class = self._vocabulary.part(content)
                return model_class.__new__(model_class, *arguments)
            case "called":
                return self._vocabulary.part(content)(*arguments)
            case "name":
                return self._vocabulary.find(content)
            case "method":
                return self._method(arguments[0], content)
        return functools.partial(arguments[0], *arguments[1], **arguments[2])

    def _method(self, owner: Any, name: str) -> Any:
        kind = type(owner)
        self._vocabulary.part(f"{kind.__module__}:{kind.__qualname__}")
        method = getattr(kind, name, None)
        if not _ATTRIBUTE.fullmatch(name) or not isinstance(method, types.FunctionType):
            raise LearnerError("it names a method that a model does not have")
        return types.MethodType(method, owner)

    def _fill(self, node: list[Any], value: Any) -> None:
        kind, content, _, after = node
        values = self._values(after)
        match kind:
            case "list":
                value.extend(values)
            case "set":
                value.update(values)
            case "dict":
                _put(value, values)
            case "object":
                _restore(value, dict(zip(self._shapes[content][1], values, strict=True)))
            case _:
                state, items, pairs = values
                if state is not None:
                    _restore(value, state)
                if items:
                    value.extend(items)
                _put(value, pairs)


def _places(references: Iterable[Any]) -> Iterator[int]:
    return (reference[0] for reference in references if isinstance(reference, list))


def _flat(pairs: Iterable[tuple[Any, Any]]) -> Iterator[Any]:
    return chain.from_iterable(pairs)


def _as_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _data(kind: str, content: Any, arguments: list[Any]) -> Any:
    if kind == "generator":
        generator = np.random.RandomState()
        generator.set_state(*arguments)
        return generator
    if kind == "bytes":
        return base64.b64decode(content)
    if kind not in ("array", "number"):
        raise LearnerError("it has a part of an unknown kind")
    dtype, model_class, data = content
    array = np.frombuffer(base64.b64decode(data), np.dtype(dtype)).reshape(model_class).copy()
    return array if kind == "array" else array[()]


def _put(target: Any, pairs: list[Any]) -> None:
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
        target[key] = value


def _restore(target: Any, state: Any) -> None:
    if hasattr(type(target), "__setstate__"):
        target.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    for name, value in {**(attributes or {}), **(slots or {})}.items():
        if not _ATTRIBUTE.fullmatch(name):
            raise LearnerError("it names an attribute that a model does not have")
        object.__setattr__(target, name, value)
