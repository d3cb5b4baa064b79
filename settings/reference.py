"""The reference of the settings file as a Markdown page, generated from the models themselves."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any, Literal, get_args, get_origin

import annotated_types as at

from learners.fusion.registry import MODES
from learners.rules.options import REQUIRED, Option
from learners.rules.registry import KINDS
from settings.fingerprint import CHANGES
from settings.keys import ANY, Key, all_keys, bare
from settings.model import ColumnSettings, Settings
from settings.render import inline
from settings.sections.base import Secret, Section, TypeName, format_duration
from settings.sections.broker import BrokerSettings, SecuritySettings, TokenSettings
from settings.sections.ensemble import ContextSettings, EnsembleSettings
from settings.sections.features import FeatureSettings
from settings.sections.learners import (
    CodeSettings,
    LearnerDefaults,
    LearnerSettings,
    RuleSettings,
)
from settings.sections.privacy import KeySettings, PrivacySettings
from settings.sections.topics import RetentionSettings, TopicSettings
from settings.sections.worker import WorkerSettings

_INTRO = """\
# The settings file

<!-- Written by `hb settings reference` from the models in settings: change it there. -->

One TOML file, `ensemble.toml` unless `--settings FILE` or the variable `HB_SETTINGS` names another,
describes an ensemble completely. `hb init` writes one with comments, `hb settings check` lists
every problem with its line, `hb settings show` prints it with all defaults filled in, and
`hb features fit data.csv` learns the numbers of features from a file.

- A **duration** is text such as `"250ms"`, `"5s"`, `"10m"`, `"2h"` or `"7d"`.
- A **name** has at most 40 lower-case letters, digits, `-` and `_`, and begins with a letter: it
  becomes part of topic names and metric labels.
- A **path** that is not absolute starts at the settings file's folder; `~` is the home folder.
- A **secret** is never written into the file. It says where to find it: `{env = "NAME"}` for an
  environment variable, `{file = "path"}` for a file.
- Any value can be **overridden** without touching the file: `--set ensemble.mode=ah` on the command
  line (it may be repeated) or `HB_SET__ENSEMBLE__MODE=ah` in the environment, with two
  underscores for each dot. The command line wins. Values are read as TOML; what is not valid TOML
  is text. The environment cannot name code: neither a rule's `package.module:name` nor
  `rules.packages`.
- An unknown key is an error, so that a misspelt key cannot be overlooked.
- **Editors** complete and check keys with `hb settings schema > ensemble.schema.json` and
  `#:schema ./ensemble.schema.json` as the first line of the file.
"""
_SECTIONS: dict[type[Section], tuple[str, str]] = {
    Settings: ("The top of the file", ""),
    ColumnSettings: ("`[columns]`", "Which columns of CSV files are not features."),
    CodeSettings: (
        "`[rules]`",
        (
            "Rules of kind `callable`, `sklearn` and `river` name Python code as"
            " `package.module:name`. Nothing is imported except from these packages and River's"
            " packages for models."
        ),
    ),
    LearnerDefaults: (
        "`[defaults]` and `[learners.<name>]`",
        (
            "`[defaults]` applies to all learners, `[learners.<name>]` to one. What a learner"
            " leaves out is taken from `[defaults]`; what neither has takes the default below,"
            " which is the paper's own setting."
        ),
    ),
    LearnerSettings: (
        "Only in `[learners.<name>]`",
        (
            "The order of learners and of their features matters to what is learned, so neither"
            " changes once an ensemble runs; see the end of this page."
        ),
    ),
    FeatureSettings: (
        "A feature",
        (
            "In the list `features` of a learner or of the context, one inline table each:"
            ' `{name = "age", scale = "minmax", low = 0, high = 100}` or'
            ' `{name = "sex", categories = ["f", "m"]}`.'
        ),
    ),
    RuleSettings: (
        "`[learners.<name>.rules.<rule>]` and `[defaults.rules.<rule>]`",
        "A learner's own rules replace those of the defaults. The other keys depend on the kind.",
    ),
    EnsembleSettings: ("`[ensemble]`", "How predictions are fused and joined with late labels."),
    ContextSettings: ("`[ensemble.context]`", "One set of weights per cube of a context."),
    PrivacySettings: (
        "`[privacy]`",
        (
            "Encryption of features, and pseudonyms; docs/privacy.md has how to begin and how to"
            " change keys."
        ),
    ),
    KeySettings: (
        "A key",
        (
            "In the lists of `[privacy]`, one inline table each:"
            ' `{id = "k1", file = "keys/left-k1"}` or `{id = "k1", env = "HB_KEY_LEFT"}`.'
        ),
    ),
    TopicSettings: ("`[topics]`", "How all topics are named, spread and copied."),
    RetentionSettings: ("`[topics.retention]`", "How long records are kept."),
    BrokerSettings: ("`[broker]`", "Which Kafka."),
    SecuritySettings: ("`[broker.security]`", "How connections are protected and who we are."),
    TokenSettings: ("`[broker.security.token]`", "Where tokens come from, to log in with them."),
    WorkerSettings: ("`[worker]`", "How a worker process runs on its machine."),
}


_WHAT_MAY_CHANGE = """\
## What may change

Some settings decide what stored state and records in flight mean. A digest of each of these is
stored with the state, and a worker whose settings have other digests refuses to start and names the
keys. Then either undo the change, or give the new settings another `name` and `topics.prefix`: that
makes a new ensemble beside the old one. `hb teach --from old.toml` teaches it from what the old
topics still hold, and `hb teach history.csv` from a file. State that was written before there were
digests takes those of the first worker that opens it.

Digests cover what the settings say, not the code or model behind a rule of kind `callable`, `river`
or `sklearn`: if that changes under the same name, the counts are still about the old one.

| key | may change | |
|---|---|---|\
"""


def reference_page() -> str:
    """Return the whole page."""
    sections = [line for model in _SECTIONS for line in _section(model)]
    return "\n".join([_INTRO, *sections, _WHAT_MAY_CHANGE, *_changes(), ""])


def _changes() -> Iterator[str]:
    """Say of every key whether it may change while there is state."""
    for change in CHANGES:
        keys = ", ".join(f"`{key.replace('.*.', '.<name>.')}`" for key in change.keys)
        yield _row(keys, "yes" if change.free else "no", change.why)


def _rule_kinds() -> Iterator[str]:
    """Describe every kind of rule with its options."""
    for kind in KINDS.values():
        learns = "It learns." if kind.learns else "It does not learn."
        yield f"**kind `{kind.name}`**: {kind.description}. {learns}\n"
        yield "| key | type | default | meaning |"
        yield "|---|---|---|---|"
        for option in kind.options:
            yield _row(f"`{option.name}`", option.expected, _option_default(option), option.help)
        yield ""


def _option_default(option: Option) -> str:
    if option.default is REQUIRED:
        return "(needed)"
    return "not set" if option.default is None else f"`{inline(option.default)}`"


def _modes() -> Iterator[str]:
    """Describe every fusion mode."""
    yield "| mode | what it does | options |"
    yield "|---|---|---|"
    for name, mode in MODES.items():
        yield _row(f"`{name}`", mode.summary, ", ".join(f"`{o}`" for o in mode.options))
    yield ""


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _section(model: type[Section]) -> Iterator[str]:
    title, text = _SECTIONS[model]
    yield f"## {title}\n"
    if text:
        yield f"{text}\n"
    yield "| key | type | default | meaning |"
    yield "|---|---|---|---|"
    for key in _keys_of(model):
        meaning = key.field.description or ""
        yield _row(f"`{key.path[-1]}`", _type(key), _default(key), meaning)
    yield ""
    yield from {RuleSettings: _rule_kinds, EnsembleSettings: _modes}.get(model, lambda: ())()


def _keys_of(model: type[Section]) -> list[Key]:
    """Return a model's own keys, each once, without those that are sections described elsewhere."""
    own = {key.path[-1]: key for key in reversed(all_keys()) if key.section is model}
    inherited = LearnerDefaults.model_fields if model is LearnerSettings else {}
    keys = [own[name] for name in model.model_fields if name not in inherited]
    return [key for key in keys if key.inner in (None, Secret) or not _has_own_heading(key)]


def _has_own_heading(key: Key) -> bool:
    return ANY not in key.path and key.inner in _SECTIONS and bare(key.annotation) is key.inner


def _type(key: Key) -> str:
    limits = ", ".join(filter(None, map(_limit, key.field.metadata)))
    return f"{_name_of(key.annotation)} {limits}".strip()


def _limit(item: Any) -> str:
    match item:
        case at.Gt(gt=bound):
            return f"> {bound}"
        case at.Ge(ge=bound):
            return f"≥ {bound}"
        case at.Lt(lt=bound):
            return f"< {bound}"
        case at.Le(le=bound):
            return f"≤ {bound}"
        case _:
            return ""


def _name_of(annotation: Any) -> str:
    names = [note for note in _annotations(annotation) if isinstance(note, TypeName)]
    if names:
        return names[0].text
    plain = bare(annotation)
    if get_origin(plain) is Literal:
        return ", ".join(f"`{inline(choice)}`" for choice in get_args(plain))
    if get_origin(plain) is tuple:
        return f"list of {_name_of(get_args(plain)[0])}"
    if plain is Secret:
        return "secret"
    if plain is KeySettings:
        return "key"
    words = {int: "whole number", float: "number", bool: "`true`, `false`", str: "text"}
    return words.get(plain, "tables" if get_origin(plain) is dict else "features")


def _annotations(annotation: Any) -> Iterator[Any]:
    """Yield what `Annotated` adds to a type, also inside `| None`, not inside lists."""
    if get_origin(annotation) is Annotated:
        inner, *notes = get_args(annotation)
        yield from notes
        yield from _annotations(inner)
    elif bare(annotation) is not annotation:
        for argument in get_args(annotation):
            yield from _annotations(argument)


def _default(key: Key) -> str:
    extra = key.field.json_schema_extra
    if isinstance(extra, dict) and "default_text" in extra:
        return str(extra["default_text"])
    if key.field.is_required():
        return "(needed)"
    default = key.field.default
    if isinstance(default, timedelta):
        return f'`"{format_duration(default)}"`'
    if default is None or not isinstance(default, (bool, int, float, str)):
        return "not set"
    return f"`{inline(default)}`"
