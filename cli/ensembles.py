"""Which ensembles a command is about: those of settings files, or of all files in a folder."""

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.settings import load
from settings.errors import InputError

if TYPE_CHECKING:
    from settings.model import Settings

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

    chosen = files or [settings_path(settings)]
    if len({file.absolute() for file in chosen}) < len(chosen):
        raise InputError("a settings file was given twice")
    return {file.absolute(): load(file, overrides) for file in chosen}


def in_folder(settings: Path | None) -> list[Path]:
    """Return every settings file of the folder in which the command looks for one."""
    from settings.loading import settings_path

    folder = settings_path(settings).absolute().parent
    files = [file for file in sorted(folder.glob("*.toml")) if _is_ensemble(file)]
    if not files:
        raise InputError(f"there is no settings file in {folder}; hb init writes one")
    return files


def _is_ensemble(file: Path) -> bool:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False
    return {"version", "name", "learners"} <= content.keys()
