"""Options of a rule: the keys of its table in the settings file, declared and read.

Each kind of rule declares its options once. The declaration checks a table, fills in defaults, and
is what `hb` and the documentation list.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isinf
from typing import Any, Final, TypeGuard

from learners.errors import OptionError


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED: Final = _Required()
"""The default of an option that has none."""


@dataclass(frozen=True)
class Option:
    """One key of a rule's table.

    kind      number, integer, text, flag, label, table, tables, or number|table and so on
    default   what a table without the key means; REQUIRED if it must be there
    low       the least number allowed; `above` says that the number must even be greater
    high      the greatest number allowed
    choices   the texts allowed
    """

    name: str
    kind: str
    default: object
    help: str
    low: float = float("-inf")
    high: float = float("inf")
    above: bool = False
    choices: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        """Say what a value must be."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        kinds = {"integer": "a whole number", "text": "a text", "flag": "true or false",
                 "number": "a number", "label": "one of the labels", "table": "a table",
                 "tables": "a list of tables"}  # fmt: skip
        phrase = " or ".join(kinds[kind] for kind in self.kind.split("|"))
        if not isinf(self.low):
            phrase += f" above {self.low:g}" if self.above else f" of at least {self.low:g}"
        return phrase if isinf(self.high) else f"{phrase}, at most {self.high:g}"

    def accepts(self, value: object, labels: Sequence[str] | None) -> bool:
        """Say whether a value fits; without labels any name of a label does."""
        return any(self._fits(kind, value, labels) for kind in self.kind.split("|"))

    def _fits(self, kind: str, value: object, labels: Sequence[str] | None) -> bool:
        match kind:
            case "number" | "integer":
                return self._fits_number(value, whole=kind == "integer")
            case "text":
                return isinstance(value, str) and (not self.choices or value in self.choices)
            case "label":
                return isinstance(value, str) and (labels is None or value in labels)
            case "flag":
                return isinstance(value, bool)
            case "table":
                return isinstance(value, Mapping)
            case _:
                return _is_list(value) and all(isinstance(item, Mapping) for item in value)

    def _fits_number(self, value: object, *, whole: bool) -> bool:
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            return False
        if not isfinite(value) or not self.low <= value <= self.high:
            return False
        return not (self.above and value == self.low)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def problems(
    table: Mapping[str, Any], declared: Sequence[Option], labels: Sequence[str] | None
) -> Iterator[tuple[str, str]]:
    """Yield each option of a table that is wrong by itself, and what is wrong with it."""
    names = [option.name for option in declared]
    for key in table:
        if key not in names:
            yield key, f"unknown option (this kind has {', '.join(names) or 'no options'})"
    for option in declared:
        if option.name not in table:
            if option.default is REQUIRED:
                yield option.name, f"is missing; it is {option.expected}"
        elif not option.accepts(table[option.name], labels):
            yield option.name, f"must be {option.expected}"


def read(
    rule: str, table: Mapping[str, Any], declared: Sequence[Option], labels: Sequence[str]
) -> dict[str, Any]:
    """Return every declared option's value; raise OptionError at a wrong one."""
    for option, message in problems(table, declared, labels):
        raise OptionError(rule, option, message)
    return {option.name: table.get(option.name, option.default) for option in declared}
