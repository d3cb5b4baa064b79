"""What the models of all sections share: strictness, names, durations, paths and secrets.

Every section is a frozen pydantic model that declares all its keys: an unknown key, a number
written as text or a value out of range is an error; nothing is guessed.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

from settings.errors import SettingsError

KeyPath: TypeAlias = tuple[str | int, ...]
"""Where a value stands in the file: keys of tables and indices of lists."""

FOREVER = timedelta.max
"""Unlimited retention."""

_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


class Section(BaseModel):
    """One table of the settings file."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,  # a password written here by mistake must not reach a log
    )


def problem(message: str, *key: str | int) -> PydanticCustomError:
    """Return the error that a validator raises; `key` is the path within its section to blame."""
    return problems([(key, message)])


def problems(several: Sequence[tuple[KeyPath, str]]) -> PydanticCustomError:
    """Return one error for several problems, each a path within the section and what is wrong."""
    text = "; ".join(message for _, message in several)
    return PydanticCustomError("settings", "{text}", {"text": text, "problems": list(several)})


def parse_duration(value: Any) -> timedelta:
    """Read `250ms`, `5s`, `1.5h`, `7d`.

    >>> parse_duration("250ms")
    datetime.timedelta(microseconds=250000)
    """
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise problem('must be a duration such as "250ms", "5s" or "7d"')
    try:
        return timedelta(**{_UNITS[match[2]]: float(match[1])})
    except OverflowError:
        raise problem("must be a shorter duration") from None


def format_duration(value: timedelta) -> str:
    """Return a duration as text, in the largest unit that keeps it a whole number.

    >>> format_duration(timedelta(minutes=90)), format_duration(timedelta(days=7))
    ('90m', '7d')
    """
    if value == FOREVER:
        return "forever"
    for unit in ("d", "h", "m", "s"):
        if value and value % timedelta(**{_UNITS[unit]: 1}) == timedelta(0):
            return f"{value // timedelta(**{_UNITS[unit]: 1})}{unit}"
    return f"{value / timedelta(milliseconds=1):.3f}".rstrip("0").rstrip(".") + "ms"


def milliseconds(value: timedelta) -> int:
    """Return a duration as Kafka expects it; -1 for `FOREVER`."""
    return -1 if value == FOREVER else round(value / timedelta(milliseconds=1))


def _parse_positive(value: Any) -> timedelta:
    duration = parse_duration(value)
    if not duration:
        raise problem("must be longer than 0")
    return duration


def _parse_retention(value: Any) -> timedelta:
    if value == "forever":
        return FOREVER
    if isinstance(value, str) and not _DURATION.fullmatch(value):
        raise problem('must be a duration such as "7d", or "forever"')
    return _parse_positive(value)


@dataclass(frozen=True)
class TypeName:
    """What the reference page calls a type."""

    text: str


_written = PlainSerializer(format_duration, return_type=str)
Duration: TypeAlias = Annotated[
    timedelta,
    BeforeValidator(_parse_positive, json_schema_input_type=str),
    _written,
    TypeName("duration"),
]
Retention: TypeAlias = Annotated[
    timedelta,
    BeforeValidator(_parse_retention, json_schema_input_type=str),
    _written,
    TypeName('duration, or `"forever"`'),
]


def is_name(text: str) -> bool:
    """Say whether a text can be part of topic names and metric labels."""
    return _NAME.fullmatch(text) is not None


def _check_name(value: Any) -> Any:
    if isinstance(value, str) and not is_name(value):
        raise problem(
            "must be a name of at most 40 lower-case letters, digits, - and _, beginning with a"
            " letter (it becomes part of topic names and metric labels)",
        )
    return value


Name: TypeAlias = Annotated[
    str, BeforeValidator(_check_name, json_schema_input_type=str), TypeName("name")
]


def _check_path(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, (str, Path)):
        return value
    if str(value) in {"", "."}:
        raise problem("must name a file or folder")
    folder = (info.context or {}).get("folder")
    path = Path(value).expanduser()
    return folder / path if folder else path


FilePath: TypeAlias = Annotated[
    Path, BeforeValidator(_check_path, json_schema_input_type=str), TypeName("path")
]
"""A path; a relative one starts at the settings file's folder."""


class Secret(Section):
    """Where a secret is kept: the settings file names the place and never holds the secret."""

    env: str | None = Field(default=None, description="The environment variable that holds it.")
    file: FilePath | None = Field(default=None, description="The file that holds it, on one line.")

    @model_validator(mode="before")
    @classmethod
    def _refuse_plain_text(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise problem(
                'a secret is never written into the settings: use {env = "NAME"} to read it from'
                ' an environment variable, or {file = "path"} to read it from a file',
            )
        return value

    @model_validator(mode="after")
    def _check_one_place(self) -> "Secret":
        if (self.env is None) == (self.file is None):
            raise problem("must name either env or file")
        return self

    def read(self) -> str:
        """Return the secret itself. Keep it out of logs and messages."""
        secret = self._read_env(self.env) if self.env else self._read_file()
        if not secret:
            raise SettingsError(f"the secret in {self} is empty")
        return secret

    def _read_env(self, name: str) -> str:
        if name not in os.environ:
            raise SettingsError(f"the secret in {self} is missing: the variable is not set")
        return os.environ[name]

    def _read_file(self) -> str:
        assert self.file is not None  # noqa: S101 - one of the two is set, by _check_one_place
        try:
            return self.file.read_text(encoding="utf-8").strip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise SettingsError(f"the secret in {self} cannot be read: {reason}") from None

    def __str__(self) -> str:
        return f"environment variable {self.env}" if self.env else f"file {self.file}"
