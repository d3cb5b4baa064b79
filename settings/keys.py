"""Every key that the settings file can have, read from the models.

The reference page, the completion of `--set` and the "did you mean" of error messages all come from
here, so that they cannot differ from what is accepted.
"""

import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from settings.model import Settings
from settings.sections.base import Section

ANY = "*"
"""Stands for a name that the user chooses, or for an index of a list."""


@dataclass(frozen=True)
class Key:
    """One key: its path with `*` for free names, and what the model says about it."""

    path: tuple[str, ...]
    field: FieldInfo
    annotation: Any
    section: type[Section]
    inner: type[Section] | None  # the section that the value is, or each of its items


@cache
def all_keys() -> tuple[Key, ...]:
    """Return every key of the file, in the order of the models."""
    return tuple(_walk(Settings, ()))


def keys_in(path: Sequence[str | int]) -> list[str]:
    """Return the keys that the table at a path can have.

    >>> keys_in(["learners", "left", "features", 3])[:3]
    ['name', 'scale', 'low']
    """
    return [
        key.path[-1]
        for key in all_keys()
        if len(key.path) == len(path) + 1 and _matches(key.path, path)
    ]


def complete(incomplete: str) -> list[str]:
    """Return the dotted keys that begin with a text, and `=`; names that users choose are left out.

    >>> complete("ensemble.fu")
    ['ensemble.fusion_timeout=']
    """
    return [
        f"{'.'.join(key.path)}="
        for key in all_keys()
        if key.inner is None and ANY not in key.path and ".".join(key.path).startswith(incomplete)
    ]


def _matches(pattern: Sequence[str], path: Sequence[str | int]) -> bool:
    return all(expected in (ANY, key) for expected, key in zip(pattern, path, strict=False))


def _walk(section: type[Section], above: tuple[str, ...]) -> Iterator[Key]:
    hints = get_type_hints(section, include_extras=True)
    for name, field in section.model_fields.items():
        inner, free = _inner_section(hints[name])
        yield Key((*above, name), field, hints[name], section, inner)
        if inner is not None:
            yield from _walk(inner, (*above, name, *([ANY] if free else [])))


def _inner_section(annotation: Any) -> tuple[type[Section] | None, bool]:
    """Return the section a value is made of, and whether a chosen name or an index leads to it."""
    annotation = bare(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation, False
    if get_origin(annotation) in (dict, tuple):
        for argument in get_args(annotation):
            inner, _ = _inner_section(argument)
            if inner is not None:
                return inner, True
    return None, False


def bare(annotation: Any) -> Any:
    """Strip `Annotated` and `| None` from a type.

    >>> bare(Annotated[int, "meta"] | None)
    <class 'int'>
    """
    if get_origin(annotation) is Annotated:
        return bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        arguments = [argument for argument in get_args(annotation) if argument is not type(None)]
        return bare(arguments[0]) if len(arguments) == 1 else annotation
    return annotation
