"""What a field should hold, in words: for error messages and for the reference."""

from collections.abc import Callable
from typing import Any

from msgspec import inspect


def wanted(kind: inspect.Type) -> str:
    """Say in words what a value of this kind is.

    >>> wanted(inspect.type_info(tuple[float, ...] | None))
    'an array (each: a finite number) or null'
    """
    return _WORDS[type(kind)](kind)


def _integer(kind: Any) -> str:
    return f"an integer from {kind.ge} to {kind.le}"


def _number(kind: Any) -> str:
    if kind.ge is None:
        return "a finite number"
    if kind.le is None:
        return f"a finite number from {kind.ge}"
    return f"a finite number from {kind.ge} to {kind.le}"


def _text(kind: Any) -> str:
    return f"text of {kind.min_length or 0} to {kind.max_length} characters"


_WORDS: dict[type[inspect.Type], Callable[[Any], str]] = {
    inspect.Metadata: lambda kind: wanted(kind.type),
    inspect.UnionType: lambda kind: " or ".join(map(wanted, kind.types)),
    inspect.VarTupleType: lambda kind: f"an array (each: {wanted(kind.item_type)})",
    inspect.DictType: lambda kind: f"an object (each: {wanted(kind.value_type)})",
    inspect.StructType: lambda _: "an object",
    inspect.StrType: _text,
    inspect.IntType: _integer,
    inspect.FloatType: _number,
    inspect.BoolType: lambda _: "true or false",
    inspect.BytesType: lambda _: "text in base64",
    inspect.NoneType: lambda _: "null",
}
