"""Which ensembles a command is about: those of settings files, or of all files in a folder."""

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.settings import load
from settings.errors import HbError, InputError

if TYPE_CHECKING:
    from settings.model import Settings

_LEARNER = re.compile(r"^\s*\[learners\.", re.MULTILINE)

FilesArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILE",
        help="Settings files, one for each ensemble.  [default: the one of --settings]",
        show_default=False,
    ),
]


def load_all(
    files: list[Path] | None, settings: Path | None, overrides: list[str] | None
) -> "dict[Path, Settings]":
    """Return the settings of each file, by its path."""
    from settings.loading import settings_path

    return {file: load(file, overrides) for file in _once(files or [settings_path(settings)])}


def load_each(files: list[Path], overrides: list[str] | None) -> "dict[Path, Settings | HbError]":
    """Return the settings of each file, or what is wrong with them: others may be right."""
    loaded: dict[Path, Settings | HbError] = {}
    for file in _once(files):
        try:
            loaded[file] = load(file, overrides)
        except HbError as error:
            loaded[file] = error
    return loaded


def _once(files: list[Path]) -> list[Path]:
    paths = [file.absolute() for file in files]
    if len(set(paths)) < len(paths):
        raise InputError("a settings file was given twice")
    return paths


def in_folder(settings: Path | None) -> list[Path]:
    """Return every settings file of the folder in which the command looks for one."""
    from settings.loading import settings_path

    folder = settings_path(settings).absolute().parent
    files = [file for file in sorted(folder.glob("*.toml")) if _is_ensemble(file)]
    if not files:
        raise InputError(f"there is no settings file in {folder}; hb init writes one")
    return files


def _is_ensemble(file: Path) -> bool:
    """Tell whether a file is one of settings, if it can be read, or else was meant to be."""
    try:
        text = file.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return _LEARNER.search(text) is not None
    except (OSError, UnicodeDecodeError):
        return False
    return {"version", "name", "learners"} <= content.keys()
