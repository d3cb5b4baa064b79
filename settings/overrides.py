"""Values from outside the file: `HB_SET__ENSEMBLE__MODE=ah` and `--set ensemble.mode=ah`.

They are applied to the file's values before validation, first the environment, then the options. A
value is read as TOML; what is not valid TOML is text, so that `ah` needs no quotes.

The environment is in more hands than the file and the command line (those of anyone who can edit a
unit, a pod or a shell profile), so it cannot name code: neither `package.module:name` in a rule nor
the packages that rules may use.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from settings.sections.base import KeyPath

PREFIX = "HB_SET__"
_TOKEN_FUNCTION = "broker", "security", "token", "function"


@dataclass(frozen=True)
class Override:
    """One value from outside the file, and where it came from."""

    keys: tuple[str, ...]
    value: Any
    origin: str
    exact: bool = True  # False: variables have neither lower-case letters nor dashes


class OverrideError(ValueError):
    """An override cannot be read or applied."""


def from_environment(environ: Mapping[str, str]) -> list[Override]:
    """Return the overrides among the environment variables, by name."""
    return [
        Override(tuple(name.removeprefix(PREFIX).split("__")), _value(environ[name]), name, False)
        for name in sorted(environ)
        if name.startswith(PREFIX)
    ]


def from_option(text: str) -> Override:
    """Read the `KEY=VALUE` of a `--set` option.

    >>> from_option("ensemble.mode=ah")
    Override(keys=('ensemble', 'mode'), value='ah', origin='--set ensemble.mode', exact=True)
    """
    key, equals, value = text.partition("=")
    try:
        nested = tomllib.loads(f"{key.strip()} = 0")
    except tomllib.TOMLDecodeError:
        nested = {}
    if not equals or not nested:
        raise OverrideError("--set: must be KEY=VALUE, such as ensemble.mode=ah")
    return Override(_only_path(nested), _value(value), f"--set {key.strip()}")


def _only_path(nested: Mapping[str, Any]) -> tuple[str, ...]:
    (key, below), *_ = nested.items()
    return (key, *(_only_path(below) if isinstance(below, Mapping) else ()))


def _value(text: str) -> Any:
    try:
        read = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return read["value"] if len(read) == 1 else text


def apply(tree: dict[str, Any], overrides: Sequence[Override]) -> dict[KeyPath, str]:
    """Apply the overrides to a tree of plain values; return the origin of each by its path."""
    origins: dict[KeyPath, str] = {}
    for override in overrides:
        try:
            origins[_apply(tree, override)] = override.origin
        except OverrideError as error:
            raise OverrideError(f"{override.origin}: {error}") from None
    return origins


def _apply(tree: dict[str, Any], override: Override) -> KeyPath:
    named = code_in(tree)
    path = _set(tree, override)
    if not override.exact and code_in(tree) - named:
        raise OverrideError("the environment cannot name code; use the settings file or --set")
    return path


def code_in(tree: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return the code that a settings file names: packages, and texts of rules with a colon.

    >>> code_in({"defaults": {"rules": {"mine": {"kind": "callable", "function": "clinic:rule"}}}})
    {('rule', 'clinic:rule')}
    """
    learners = tree.get("learners")
    tables = [tree.get("defaults"), *(learners.values() if isinstance(learners, dict) else ())]
    rules = [table.get("rules") for table in tables if isinstance(table, dict)]
    return {
        *(("rule", text) for text in _texts(rules) if ":" in text),
        *(("package", text) for text in _texts(tree.get("rules"))),
        *(("token", text) for text in _texts(_below(tree, *_TOKEN_FUNCTION))),
    }


def _below(table: Any, *keys: str) -> Any:
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _set(tree: dict[str, Any], override: Override) -> KeyPath:
    at: Any = tree  # the table or list reached so far
    path: KeyPath = ()
    for depth, key in enumerate(override.keys):
        place = _place(at, key, override.exact)
        path = (*path, place)
        if depth == len(override.keys) - 1:
            at[place] = override.value
        else:
            if isinstance(at, dict):
                at.setdefault(place, {})
            at = at[place]
    return path


def _place(table: Any, key: str, exact: bool) -> str | int:
    """Return the key or index under which `key` is found, or is to be put."""
    if isinstance(table, list):
        if not key.isdecimal() or int(key) >= len(table):
            raise OverrideError(f"the list has no item {key} (items are 0 to {len(table) - 1})")
        return int(key)
    if not isinstance(table, dict):
        raise OverrideError(f"there is no table that could hold {key}")
    if not key:
        raise OverrideError("a part of the key is empty")
    if exact:
        return key
    return next((name for name in table if _as_variable(name) == _as_variable(key)), key.lower())


def _as_variable(key: str) -> str:
    return key.upper().replace("-", "_").replace(" ", "_")
