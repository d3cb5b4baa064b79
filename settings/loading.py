"""From a file, the environment and `--set` to a `Settings` object, or to all its problems."""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from settings import overrides as over
from settings.client_settings import ClientSettings
from settings.errors import SettingsError
from settings.lines import lines_of, nearest_line
from settings.problems import Problem, explain
from settings.sections.base import KeyPath, Section

if TYPE_CHECKING:
    from settings.model import Settings

_Model = TypeVar("_Model", bound=Section)
DEFAULT_FILE = "ensemble.toml"
VARIABLE = "HB_SETTINGS"
_HINTS = {"Invalid value": ' (text needs quotes, as in mode = "wm")'}


@dataclass(frozen=True)
class Source:
    """A settings file as it was written, with the overrides applied.

    tree      plain values
    lines     the line of each path in the file
    origins   for each path that was overridden, by what
    dropped   what the file says about the fusion mode that an override replaced
    """

    path: Path
    tree: dict[str, Any]
    lines: Mapping[KeyPath, int]
    origins: Mapping[KeyPath, str]
    dropped: Sequence[str] = ()

    @property
    def notes(self) -> list[str]:
        """Say what was dropped, if anything was."""
        if not self.dropped:
            return []
        mode, names = self.tree["ensemble"]["mode"], ", ".join(self.dropped)
        return [f"mode {mode} does not take {names}: ensemble.options of the file are not used"]

    def where(self, path: KeyPath) -> str:
        """Say where a value was written: an override, or the file and its line."""
        line = nearest_line(self.lines, path)
        return self.origin(path) or (f"{self.path}:{line}" if line else str(self.path))

    def order(self, path: KeyPath) -> tuple[bool, int]:
        """Return a sort key: what is missing first, then the file's lines, then the overrides."""
        return self.origin(path) is not None, nearest_line(self.lines, path) or 0

    def origin(self, path: KeyPath) -> str | None:
        """Return the override that set a value, if one did."""
        prefixes = (path[:end] for end in range(len(path), 0, -1))
        return next((self.origins[prefix] for prefix in prefixes if prefix in self.origins), None)


def load_settings(
    path: str | os.PathLike[str] | None = None,
    overrides: Sequence[str] = (),
    *,
    environ: Mapping[str, str] | None = None,
    fitted: bool = True,
) -> "Settings":
    """Read and validate a settings file.

    path        the file; by default the one that HB_SETTINGS names, or else ensemble.toml
    overrides   `KEY=VALUE` texts, as given with `--set`
    environ     the environment, if not the process's own
    fitted      refuse features whose numbers are missing (`hb features fit` learns them)

    Raises SettingsError with every problem, each with its place.
    """
    return validate(read_source(path, overrides, environ=environ), fitted=fitted)


def load_client_settings(
    path: str | os.PathLike[str] | None = None, *, environ: Mapping[str, str] | None = None
) -> ClientSettings:
    """Read what a client needs of a settings file, and validate that."""
    return _validated(read_source(path, environ=environ), ClientSettings, fitted=False)


def read_source(
    path: str | os.PathLike[str] | None = None,
    overrides: Sequence[str] = (),
    *,
    environ: Mapping[str, str] | None = None,
) -> Source:
    """Read a settings file and apply the overrides, without validating."""
    environ = os.environ if environ is None else environ
    file = settings_path(path, environ)
    try:
        options = [over.from_option(option) for option in overrides]
    except over.OverrideError as error:
        raise SettingsError(str(error)) from None
    return source_of(_read(file), file, [*over.from_environment(environ), *options])


def settings_path(
    path: str | os.PathLike[str] | None = None, environ: Mapping[str, str] = os.environ
) -> Path:
    """Return the settings file: the one given, the one in the environment, or the default."""
    return Path(path or environ.get(VARIABLE) or DEFAULT_FILE)


def source_of(text: str, file: Path, overrides: Sequence[over.Override] = ()) -> Source:
    """Apply overrides to a text that is, or is to become, that of a file."""
    tree = _parse(text, file)
    try:
        origins = over.apply(tree, overrides)
    except over.OverrideError as error:
        raise SettingsError(str(error)) from None
    return Source(file, tree, lines_of(text), origins, _drop_foreign_options(tree, origins))


def _drop_foreign_options(tree: dict[str, Any], origins: Mapping[KeyPath, str]) -> list[str]:
    """Where an override names another mode, drop the options of the old one; return their names.

    An option that an override names stays: if it does not fit, that is a mistake.
    """
    ensemble = tree.get("ensemble")
    if ("ensemble", "mode") not in origins or not isinstance(ensemble, dict):
        return []
    # A program that only publishes and reads has no learners installed, and overrides no mode.
    from learners.fusion.registry import MODES  # noqa: PLC0415

    mode, options = MODES.get(str(ensemble["mode"])), ensemble.get("options")
    if mode is None or not isinstance(options, dict) or ("ensemble", "options") in origins:
        return []
    foreign = [
        name
        for name in options
        if name not in mode.options and ("ensemble", "options", name) not in origins
    ]
    for name in foreign:
        del options[name]
    return foreign


def validate(source: Source, *, fitted: bool = True) -> "Settings":
    """Return the settings, or raise SettingsError with all problems."""
    from settings.model import Settings  # noqa: PLC0415 - a client has no learners to check against

    return _validated(source, Settings, fitted=fitted)


def _validated(source: Source, model: type[_Model], *, fitted: bool) -> _Model:
    context = {"folder": source.path.parent.absolute(), "fitted": fitted}
    try:
        return model.model_validate(source.tree, context=context)
    except ValidationError as error:
        explained = list(explain(error, source.tree))
    explained.sort(key=lambda problem: source.order(problem[0]))
    problems = [
        Problem(source.where(path), ".".join(map(str, path)), text) for path, text in explained
    ]
    head = [f"{len(problems)} problems in the settings:"] if len(problems) > 1 else []
    raise SettingsError("\n".join([*head, *map(str, problems)]), problems)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SettingsError(
            f"{file}: there is no such settings file; create one with `hb init`, or name another"
            f" with --settings FILE or {VARIABLE}"
        ) from None
    except OSError as error:
        raise SettingsError(f"{file}: cannot read it: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{file}: is not UTF-8 text") from None


def _parse(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error))
        reason, line = (match[1], match[2]) if match else (str(error), None)
        place = f"{file}:{line or max(1, len(text.splitlines()))}"
        message = f"not valid TOML: {reason[:1].lower()}{reason[1:]}{_HINTS.get(reason, '')}"
        raise SettingsError(f"{place}: {message}", [Problem(place, "", message)]) from None
