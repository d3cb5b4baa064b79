"""What is wrong with a settings file, in words: each problem with its place and key."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from learners.errors import suggestion
from settings.sections.base import KeyPath

_WORDS = {
    "missing": "is missing",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be text, in quotes",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "too_short": "needs at least {min_length} (has {actual_length})",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be {ge:g} or more",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be {le:g} or less",
    "literal_error": "must be {expected}",
}
_SHOWN_TEXT = {"literal_error"}
"""Errors that may quote the text, which stands where a keyword belongs; others may be secret."""


@dataclass(frozen=True)
class Problem:
    """One problem: where (file and line, or an override), at which key, and what."""

    where: str
    key: str
    message: str

    def __str__(self) -> str:
        key = "" if self.where.endswith(f" {self.key}") else self.key  # `--set KEY` names it
        return ": ".join(part for part in (self.where, key, self.message) if part)


def explain(error: ValidationError, tree: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Yield each problem once: its path in the file that `tree` was read from, and the message."""
    problems: set[tuple[KeyPath, str]] = set()
    for details in error.errors(include_url=False):
        for path, message in _messages(details):
            problem = (_where_written(path, tree), message)
            if problem not in problems:
                problems.add(problem)
                yield problem


def _messages(details: ErrorDetails) -> Iterator[tuple[KeyPath, str]]:
    path = tuple(part for part in details["loc"] if part != "[key]")
    context = details.get("ctx", {})
    if details["type"] == "settings":
        for below, message in context["problems"]:
            yield (*path, *below), message + _shown(details, bool(below))
    elif details["type"] == "extra_forbidden":
        yield path, _unknown(path)
    else:
        words = _WORDS.get(details["type"])
        message = words.format(**context).replace("'", '"') if words else details["msg"]
        yield path, message + _shown(details, details["type"] == "missing")


def _shown(details: ErrorDetails, elsewhere: bool) -> str:
    value = details.get("input")
    if elsewhere or not isinstance(value, (bool, int, float, str)):
        return ""
    if isinstance(value, bool):
        return f" (is {str(value).lower()})"
    if isinstance(value, str):
        return f' (is "{value}")' if details["type"] in _SHOWN_TEXT else ""
    return f" (is {value})"


def _unknown(path: KeyPath) -> str:
    try:
        from settings.keys import keys_in  # noqa: PLC0415 - needs all models, with their learners
    except ModuleNotFoundError:
        return "unknown key"
    names = keys_in(path[:-1])
    hint = suggestion(str(path[-1]), names) or f" (known here: {', '.join(names)})"
    return f"unknown key{hint}"


def _where_written(path: KeyPath, tree: Mapping[str, Any]) -> KeyPath:
    """Return the path in `[defaults]` if a learner only inherited the value."""
    match path:
        case ("learners", str(name), key, *below):
            learner, defaults = tree["learners"][name], tree.get("defaults")
            inherited = isinstance(learner, Mapping) and key not in learner
            if inherited and isinstance(defaults, Mapping) and key in defaults:
                return ("defaults", key, *below)
    return path
