"""`hb features fit`: learn the numbers of all features from a file and write them to the settings.

1. read the settings as they are written, without overrides: only what is written is changed
2. read the data once, and each column in the way that its features need
3. put what was learned into the text; comments and layout stay
4. validate the new text
5. replace the file in one step, so that a crash leaves the old one or the new one
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import tomlkit

from settings.errors import InputError
from settings.loading import read_source, source_of, validate
from settings.model import Settings
from settings.proposing.csv_file import CsvFile
from settings.proposing.fitting import Fit, fit_for
from settings.sections.base import KeyPath
from settings.sections.features import NUMBERS, FeatureSettings, Scale


@dataclass(frozen=True)
class Change:
    """What was learned about one feature, and what the settings said before."""

    path: KeyPath
    feature: str
    before: dict[str, Any]
    after: dict[str, Any]
    rows: int
    blanks: int

    @property
    def owner(self) -> str:
        """Return the learner that sees the feature, or `context`."""
        return str(self.path[1])

    @property
    def index(self) -> int:
        """Return the feature's index in its list."""
        return int(self.path[-1])

    @property
    def changed(self) -> bool:
        """The settings file said something else before."""
        return self.before != self.after


def refit(
    settings_file: Path,
    data: CsvFile,
    scale: Scale | None = None,
    advance: Callable[[int], None] = lambda _: None,
    *,
    write: bool = True,
) -> list[Change]:
    """Learn all features' numbers from `data` and, unless told not to, write them."""
    source = read_source(settings_file, environ={})
    settings = validate(source, fitted=False)
    # One that is told to be scaled online has no numbers.
    chosen = [
        (path, feature)
        for path, feature in features_of(settings)
        if scale or feature.scale != "online"
    ]
    fits = {path: fit_for(feature, scale) for path, feature in chosen}
    _read(data, settings, fits, advance)
    changes = [_change(path, feature, fits[path], scale) for path, feature in chosen]
    # Bytes, because reading as text would turn \r\n into \n.
    text = _rewritten(settings_file.read_bytes().decode("utf-8-sig"), changes)
    validate(source_of(text, settings_file))
    if write:
        replace_text(settings_file, text)
    return changes


def features_of(settings: Settings) -> Iterator[tuple[KeyPath, FeatureSettings]]:
    """Yield every feature with its path: those of the learners, then those of the context."""
    for name, learner in settings.learners.items():
        for i, feature in enumerate(learner.features):
            yield ("learners", name, "features", i), feature
    if settings.ensemble.context is not None:
        for i, feature in enumerate(settings.ensemble.context.features):
            yield ("ensemble", "context", "features", i), feature


def _read(
    data: CsvFile,
    settings: Settings,
    fits: dict[KeyPath, Fit],
    advance: Callable[[int], None],
) -> None:
    names = {path: feature.name for path, feature in features_of(settings) if path in fits}
    for chunk in data.chunks(list(dict.fromkeys(names.values())), advance):
        for path, fit in fits.items():
            fit.take(chunk, names[path])


def _change(path: KeyPath, feature: FeatureSettings, fit: Fit, scale: Scale | None) -> Change:
    learned = fit.learned(feature.name)
    before = feature.model_dump(mode="json", exclude_none=True, exclude={"name", "required"})
    if not feature.categorical:
        chosen = scale or feature.scaling
        # `minmax` is what an absent scale means: it is written only where it was.
        learned = {**({"scale": chosen} if scale or feature.scale else {}), **learned}
    required = {"required": True} if feature.required else {}
    return Change(path, feature.name, before | required, learned | required, fit.rows, fit.blanks)


def _rewritten(text: str, changes: list[Change]) -> str:
    document = tomlkit.parse(text)
    for change in changes:
        features: Any = document
        for key in change.path[:-1]:
            features = features[key]
        if isinstance(features, tomlkit.items.AoT):
            _update(features[change.index], change)
        else:
            # A new inline table, because keys added to an old one get no space before them.
            features[change.index] = tomlkit.inline_table()
            features[change.index].update({"name": change.feature, **change.after})
    return tomlkit.dumps(document)


def _update(table: Any, change: Change) -> None:
    for key in {"scale", "categories", *sum(NUMBERS.values(), ())} - change.after.keys():
        table.pop(key, None)
    table.update(change.after)


def replace_text(file: Path, text: str) -> None:
    """Replace a file's text in one step, keeping its permissions; a link stays a link."""
    target = file.resolve()
    try:
        with NamedTemporaryFile(
            "w",
            encoding="utf-8",
            newline="",
            dir=target.parent,
            prefix=f".{target.name}.",
            delete=False,
        ) as new:
            try:
                new.write(text)
                new.flush()
                os.fsync(new.fileno())
                mode = target.stat().st_mode if target.exists() else 0o666 & ~_umask()
                Path(new.name).chmod(mode & 0o777)
                Path(new.name).replace(target)
            except BaseException:
                Path(new.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise InputError(f"{file}: cannot write it: {error.strerror}") from None


def _umask() -> int:
    """Return the process's umask, which can be read only by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
