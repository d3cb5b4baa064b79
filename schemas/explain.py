"""Why a parsed document is not the record it should be: the first fault, by field, without values.

Walks the document along the record's own type, so that there is one description of a record. Slow,
and only asked after the fast decoder has refused. Keys that come from the document are never named:
`weights.*` stands for any key of `weights`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Any

from msgspec import Struct, inspect

from schemas.errors import RecordError
from schemas.kinds import VERSION
from schemas.reasons import Reason
from schemas.words import wanted


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at one place of a document."""

    reason: Reason
    path: str
    expected: str

    def error(self) -> RecordError:
        """Return the fault as the error that readers report."""
        return RecordError(self.reason, f"{self.path}: expected {self.expected}")


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
        return Fault(Reason.WRONG_TYPE, path, wanted(kind))
    fault = _CHECKS[type(kind)](value, kind, path)
    if is_id and fault is not None:
        return Fault(Reason.BAD_ID, path, wanted(kind))
    return fault


def _fits(value: object, kind: inspect.Type) -> bool:
    """Say whether the JSON type of a value is the one of its kind."""
    if isinstance(kind, inspect.Metadata):
        return _fits(value, kind.type)
    if isinstance(kind, inspect.UnionType):
        return any(_fits(value, option) for option in kind.types)
    if isinstance(kind, inspect.IntType) and isinstance(value, float):
        return not isfinite(value)  # told apart by _number, which has the better reason
    # In Python a bool is an int; in JSON it is not.
    return type(value) in _PYTHON_TYPES[type(kind)]


def _struct(value: Any, kind: Any, path: str) -> Fault | None:
    fault = _version(value) if kind.tag_field else None
    prefix = "" if path == "record" else f"{path}."
    for field in kind.fields:
        if fault is not None:
            break
        inner = prefix + field.encode_name
        if field.encode_name in value:
            fault = _walk(value[field.encode_name], field.type, inner)
        elif field.required:
            fault = Fault(Reason.MISSING_FIELD, inner, wanted(field.type))
    return fault


def _version(value: dict[str, object]) -> Fault | None:
    if "v" not in value:
        return Fault(Reason.MISSING_FIELD, "v", f"the version, {VERSION}")
    # A later version may mean other things by the same fields: nothing else is looked at.
    if type(value["v"]) is not int or value["v"] != VERSION:
        return Fault(Reason.WRONG_VERSION, "v", f"the version, {VERSION}")
    return None


def _union(value: Any, kind: Any, path: str) -> Fault | None:
    return next(_walk(value, option, path) for option in kind.types if _fits(value, option))


def _array(value: Any, kind: Any, path: str) -> Fault | None:
    if len(value) < (kind.min_length or 0):
        return Fault(Reason.OUT_OF_RANGE, path, f"at least {kind.min_length} entries")
    return _first(_walk(item, kind.item_type, f"{path}[{i}]") for i, item in enumerate(value))


def _object(value: Any, kind: Any, path: str) -> Fault | None:
    names = (_walk(name, kind.key_type, f"names in {path}") for name in value)
    items = (_walk(item, kind.value_type, f"{path}.*") for item in value.values())
    return _first(names) or _first(items)


def _first(faults: Iterable[Fault | None]) -> Fault | None:
    return next((fault for fault in faults if fault is not None), None)


def _text(value: Any, kind: Any, path: str) -> Fault | None:
    if (kind.min_length or 0) <= len(value) <= kind.max_length:
        return None
    return Fault(Reason.OUT_OF_RANGE, path, wanted(kind))


def _number(value: Any, kind: Any, path: str) -> Fault | None:
    if not isfinite(value):
        return Fault(Reason.NOT_FINITE, path, wanted(kind))
    low, high = kind.ge, kind.le
    if (low is None or value >= low) and (high is None or value <= high):
        return None
    return Fault(Reason.OUT_OF_RANGE, path, wanted(kind))


def _nothing(_value: Any, _kind: Any, _path: str) -> Fault | None:
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

_CHECKS: dict[type[inspect.Type], Callable[[Any, Any, str], Fault | None]] = {
    inspect.StructType: _struct,
    inspect.DictType: _object,
    inspect.VarTupleType: _array,
    inspect.UnionType: _union,
    inspect.StrType: _text,
    inspect.IntType: _number,
    inspect.FloatType: _number,
    inspect.BoolType: _nothing,
    inspect.NoneType: _nothing,
}
