"""Settings as TOML text with every default filled in, and where each value came from."""

from collections.abc import Iterator, Mapping
from typing import Any

import tomlkit

from settings.loading import Source
from settings.model import Settings
from settings.sections.base import KeyPath
from settings.sections.broker import BrokerSettings


def render(settings: Settings, source: Source) -> str:
    """Return a settings file with every value of `settings`; it reads back as the same settings.

    A comment says where a value comes from, unless it stands in the file itself. Of a secret only
    its place is shown: the settings do not hold it.
    """
    return "\n".join(_table(settings.model_dump(mode="json"), (), source)).strip() + "\n"


def origin(path: KeyPath, source: Source) -> str:
    """Say where a value comes from: an override, `[defaults]`, `default`, or "" for the file."""
    if override := source.origin(path):
        return override
    if _written(source.tree, path):
        return ""
    match path:
        case ("learners", _, *below) if _written(source.tree, ("defaults", *below)):
            return source.origin(("defaults", *below)) or "[defaults]"
    return "default"


def origins(settings: Settings, source: Source) -> dict[str, str]:
    """Return the origin of each value that does not stand in the file itself, by its dotted key."""
    elsewhere = {}
    for path in _paths(settings.model_dump(mode="json"), ()):
        if where := origin(path, source):
            elsewhere[".".join(map(str, path))] = where
    return elsewhere


def _paths(value: Any, path: KeyPath) -> Iterator[KeyPath]:
    if _is_table(value):
        for key, below in value.items():
            yield from _paths(below, (*path, key))
    elif value is not None:
        yield path


def _written(tree: Any, path: KeyPath) -> bool:
    for key in path:
        inside = isinstance(tree, list) or (isinstance(tree, Mapping) and key in tree)
        if not inside:
            return False
        tree = tree[key]
    return True


def _table(table: Mapping[str, Any], path: KeyPath, source: Source) -> Iterator[str]:
    """Yield the lines of a table: plain values first, as TOML demands, then the tables below it."""
    below = {key: value for key, value in table.items() if _is_table(value)}
    plain = {key: value for key, value in table.items() if key not in below}
    if path and (plain or not below):
        yield ""
        yield f"[{_dotted(path)}]"
    for key, value in plain.items():
        yield from _value(key, value, (*path, key), source)
    for key, value in below.items():
        yield from _table(value, (*path, key), source)


def _is_table(value: Any) -> bool:
    # A secret is a table of its own, but reads better on one line.
    return isinstance(value, Mapping) and value.keys() != {"env", "file"}


def _value(key: str, value: Any, path: KeyPath, source: Source) -> Iterator[str]:
    where = origin(path, source)
    comment = f"  # {where}" if where else ""
    if value is None:
        yield f"# {key} is not set"
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        yield f"{_dotted((key,))} = [{comment}"
        yield from (f"    {inline(item)}," for item in value)
        yield "]"
    else:
        yield f"{_dotted((key,))} = {inline(value)}{comment}"


def inline(value: Any) -> str:
    """Return a value on one line; keys that are not set are left out."""
    if isinstance(value, Mapping):
        pairs = (f"{_dotted((k,))} = {inline(v)}" for k, v in value.items() if v is not None)
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return str(tomlkit.item(value).as_string())


def broker_section(broker: BrokerSettings) -> str:
    """Return the `[broker]` section of a settings file, with what differs from the defaults.

    >>> print(broker_section(BrokerSettings(bootstrap="localhost:9092")), end="")
    [broker]
    bootstrap = "localhost:9092"
    """
    values = broker.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    security = values.pop("security", {})
    lines = ["[broker]", *(f"{key} = {inline(value)}" for key, value in values.items())]
    if security:
        lines += ["", "[broker.security]"]
        lines += [f"{key} = {inline(value)}" for key, value in security.items()]
    return "\n".join(lines) + "\n"


def _dotted(path: KeyPath) -> str:
    return tomlkit.key([str(key) for key in path]).as_string()
