"""Why a value that the decoder refused is not the record it should be: the first fault, by field.

Walks the document along the record's own type, so that there is one description of a record. Slow,
and only asked once the decoder has refused. Nothing from the document is ever quoted, not even its
keys: `weights.*` stands for any key of `weights`.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Any

from msgspec import Struct, inspect

from schemas.errors import RecordError
from schemas.kinds import VERSION
from schemas.refusals import Reason


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at one place of a document."""

    reason: Reason
    path: str
    expected: str

    def error(self) -> RecordError:
        """Return the fault as the error that readers report."""
        return RecordError(self.reason, f"{self.path}: expected {self.expected}")


def explain(value: bytes, fault_in: Callable[[Any], Fault | None]) -> RecordError:
    """Say why a value cannot be read; `fault_in` finds the first fault of a parsed document."""
    try:
        document = json.loads(value.decode(), parse_int=_parse_integer)
    except UnicodeDecodeError:
        return RecordError(Reason.NOT_UTF8, "expected JSON in UTF-8")
    except json.JSONDecodeError:
        return RecordError(Reason.MALFORMED, "expected one complete JSON object")
    fault = fault_in(document)
    if fault is not None:
        return fault.error()
    # The standard parser is more lenient than the decoder: it takes half a surrogate pair, and NaN
    # in fields that are skipped; and of two equal keys it does not show the first.
    return RecordError(Reason.MALFORMED, "expected strict JSON, each key once")


def _parse_integer(text: str) -> float:
    # Python refuses to convert integers of thousands of digits; as doubles they are infinite.
    number = float(text)
    return int(text) if isfinite(number) else number


def first_fault(document: object, record: type[Struct]) -> Fault | None:
    """Return the first fault of a document as a record, or None."""
    return fault_at(document, record, "record")


def fault_at(value: object, kind: type, path: str) -> Fault | None:
    """Return the first fault of a value that should be of a kind, or None."""
    return _walk(value, _type_info(kind), path)


_type_info = cache(inspect.type_info)


def _walk(value: object, kind: inspect.Type, path: str) -> Fault | None:
    is_id = False
    if isinstance(kind, inspect.Metadata):
        is_id = (kind.extra or {}).get("kind") == "id"
        kind = kind.type
    if not _fits(value, kind):
        return Fault(Reason.WRONG_TYPE, path, in_words(kind))
    fault = _FAULTS[type(kind)](value, kind, path)
    if is_id and fault is not None:
        return Fault(Reason.BAD_ID, path, in_words(kind))
    return fault


def _fits(value: object, kind: inspect.Type) -> bool:
    """Say whether the JSON type of a value is that of its kind."""
    if isinstance(kind, inspect.Metadata):
        return _fits(value, kind.type)
    if isinstance(kind, inspect.UnionType):
        return any(_fits(value, option) for option in kind.types)
    if isinstance(kind, inspect.IntType) and isinstance(value, float):
        return not isfinite(value)  # _number_fault has the better reason for these
    # In Python a bool is an int; in JSON it is not.
    return type(value) in _PYTHON_TYPES[type(kind)]


def _struct_fault(value: Any, kind: Any, path: str) -> Fault | None:
    fault = _version_fault(value) if kind.tag_field else None
    prefix = "" if path == "record" else f"{path}."
    for field in kind.fields:
        if fault is not None:
            break
        inner = prefix + field.encode_name
        if field.encode_name in value:
            fault = _walk(value[field.encode_name], field.type, inner)
        elif field.required:
            fault = Fault(Reason.MISSING_FIELD, inner, in_words(field.type))
    return fault


def _version_fault(value: dict[str, object]) -> Fault | None:
    if "v" not in value:
        return Fault(Reason.MISSING_FIELD, "v", f"the version, {VERSION}")
    # A later version may mean something else by the same fields: nothing else is looked at.
    if type(value["v"]) is not int or value["v"] != VERSION:
        return Fault(Reason.WRONG_VERSION, "v", f"the version, {VERSION}")
    return None


def _union_fault(value: Any, kind: Any, path: str) -> Fault | None:
    return next(_walk(value, option, path) for option in kind.types if _fits(value, option))


def _array_fault(value: Any, kind: Any, path: str) -> Fault | None:
    if len(value) < (kind.min_length or 0):
        return Fault(Reason.OUT_OF_RANGE, path, f"at least {kind.min_length} entries")
    return _first(_walk(item, kind.item_type, f"{path}[{i}]") for i, item in enumerate(value))


def _object_fault(value: Any, kind: Any, path: str) -> Fault | None:
    names = (_walk(name, kind.key_type, f"names in {path}") for name in value)
    items = (_walk(item, kind.value_type, f"{path}.*") for item in value.values())
    return _first(names) or _first(items)


def _first(faults: Iterable[Fault | None]) -> Fault | None:
    return next((fault for fault in faults if fault is not None), None)


def _text_fault(value: Any, kind: Any, path: str) -> Fault | None:
    if (kind.min_length or 0) <= len(value) <= kind.max_length:
        return None
    return Fault(Reason.OUT_OF_RANGE, path, in_words(kind))


def _number_fault(value: Any, kind: Any, path: str) -> Fault | None:
    if not isfinite(value):
        return Fault(Reason.NOT_FINITE, path, in_words(kind))
    low, high = kind.ge, kind.le
    if (low is None or value >= low) and (high is None or value <= high):
        return None
    return Fault(Reason.OUT_OF_RANGE, path, in_words(kind))


def _no_fault(_value: Any, _kind: Any, _path: str) -> Fault | None:
    return None


_PYTHON_TYPES: dict[type[inspect.Type], tuple[type, ...]] = {
    inspect.StructType: (dict,),
    inspect.DictType: (dict,),
    inspect.VarTupleType: (list,),
    inspect.StrType: (str,),
    inspect.IntType: (int,),
    inspect.FloatType: (int, float),
    inspect.BoolType: (bool,),
    inspect.NoneType: (type(None),),
}

_FAULTS: dict[type[inspect.Type], Callable[[Any, Any, str], Fault | None]] = {
    inspect.StructType: _struct_fault,
    inspect.DictType: _object_fault,
    inspect.VarTupleType: _array_fault,
    inspect.UnionType: _union_fault,
    inspect.StrType: _text_fault,
    inspect.IntType: _number_fault,
    inspect.FloatType: _number_fault,
    inspect.BoolType: _no_fault,
    inspect.NoneType: _no_fault,
}


def in_words(kind: inspect.Type) -> str:
    """Say in words what a value of a kind is: for errors and for the reference.

    >>> in_words(inspect.type_info(tuple[float, ...] | None))
    'an array (each: a finite number) or null'
    """
    return _WORDS[type(kind)](kind)


def _number_in_words(kind: Any) -> str:
    if kind.ge is None:
        return "a finite number"
    if kind.le is None:
        return f"a finite number from {kind.ge}"
    return f"a finite number from {kind.ge} to {kind.le}"


_WORDS: dict[type[inspect.Type], Callable[[Any], str]] = {
    inspect.Metadata: lambda kind: in_words(kind.type),
    inspect.UnionType: lambda kind: " or ".join(map(in_words, kind.types)),
    inspect.VarTupleType: lambda kind: f"an array (each: {in_words(kind.item_type)})",
    inspect.DictType: lambda kind: f"an object (each: {in_words(kind.value_type)})",
    inspect.StructType: lambda _: "an object",
    inspect.StrType: lambda kind: f"text of {kind.min_length or 0} to {kind.max_length} characters",
    inspect.IntType: lambda kind: f"an integer from {kind.ge} to {kind.le}",
    inspect.FloatType: _number_in_words,
    inspect.BoolType: lambda _: "true or false",
    inspect.BytesType: lambda _: "text in base64",
    inspect.NoneType: lambda _: "null",
}
