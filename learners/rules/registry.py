"""Every kind of rule there is, and the one place that makes a rule from its settings table.

>>> from learners.local.features import unit_cube
>>> rule = make_rule({"kind": "logistic", "rate": 0.1}, unit_cube(2), ["benign", "malignant"])
>>> rule.name, rule.learns
('logistic', True)
>>> KINDS["constant"].learns
False
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from learners.errors import LearnerError, OptionError, suggestion
from learners.local.features import FeatureSpace
from learners.rules.base import LearningRule, Rule
from learners.rules.bayes import BayesianLogistic
from learners.rules.callables import CallableRule
from learners.rules.cells import AdaptiveCells
from learners.rules.constant import Constant
from learners.rules.lda import RankLda
from learners.rules.linear import Linear
from learners.rules.logistic import Logistic
from learners.rules.naive_bayes import NaiveBayes
from learners.rules.options import REQUIRED, Option, read
from learners.rules.river_models import RiverModel
from learners.rules.rule_committee import CLIP, Committee, additive, joint, kdi, mixed
from learners.rules.scalers import SCALERS
from learners.rules.sklearn_models import sklearn_rule
from learners.rules.threshold import Threshold

PRESETS = {"kdi": kdi, "additive": additive, "joint": joint, "mixed": mixed}


@dataclass(frozen=True)
class Request:
    """What a rule is made from.

    values     every option of its kind, checked
    packages   packages whose code its options may name
    """

    name: str
    space: FeatureSpace
    labels: tuple[str, ...]
    values: dict[str, Any]
    packages: Collection[str]

    @property
    def classes(self) -> int:
        """Return K."""
        return len(self.labels)

    def label(self, option: str) -> int:
        """Return the index of the label an option names."""
        return self.labels.index(self.values[option])


@dataclass(frozen=True)
class Kind:
    """A kind of rule: its word in the settings, what it does, its options, how it is made."""

    name: str
    description: str
    learns: bool
    options: tuple[Option, ...]
    make: Callable[[Request], Rule]


def make_rule(
    table: Mapping[str, Any],
    space: FeatureSpace,
    labels: Sequence[str],
    name: str | None = None,
    packages: Collection[str] = (),
) -> Rule:
    """Make a rule from its settings table: `kind`, perhaps a `name`, and the kind's options.

    `name` is what the rule is called if its table does not say. Code that it names must come from
    one of the `packages`.
    """
    called = table.get("name", name or table.get("kind"))
    kind = find_kind(table.get("kind"), called or "?")
    if not isinstance(called, str) or not called:
        raise OptionError(kind.name, "name", "must be a text")
    options = {key: value for key, value in table.items() if key not in ("kind", "name")}
    values = read(called, options, kind.options, labels)
    return kind.make(Request(called, space, tuple(labels), values, packages))


def find_kind(word: object, rule: str) -> Kind:
    """Return the kind that a rule's table names."""
    if isinstance(word, str) and word in KINDS:
        return KINDS[word]
    hint = suggestion(word, KINDS) if isinstance(word, str) else ""
    raise OptionError(rule, "kind", f"is not a kind of rule{hint} (kinds: {', '.join(KINDS)})")


_JOINT_PRESETS = ("additive", "joint", "mixed")


def is_joint(table: Mapping[str, Any]) -> bool:
    """Tell from its settings table whether a rule is joint: what making it would show.

    >>> is_joint({"kind": "bayes", "joint": True}), is_joint({"kind": "committee"})
    (True, False)
    """
    members = any(map(is_joint, table.get("members", ())))
    return bool(table.get("joint")) or members or table.get("preset") in _JOINT_PRESETS


def _constant(r: Request) -> Rule:
    return Constant(r.label("label"), classes=r.classes, name=r.name)


def _threshold(r: Request) -> Rule:
    labels = {"above": r.label("above"), "below": r.label("below")}
    return Threshold(r.name, r.space, r.classes, **{**r.values, **labels})


def _callable(r: Request) -> Rule:
    return CallableRule(r.name, r.space, r.labels, r.values["function"], r.packages)


def _river(r: Request) -> Rule:
    return RiverModel(r.name, r.space, r.classes, packages=r.packages, **r.values)


def _sklearn(r: Request) -> Rule:
    return sklearn_rule(r.name, r.space, r.labels, r.values["model"], r.packages)


def _linear(r: Request) -> Rule:
    weights, bias = r.values["weights"], r.values["bias"]
    nested = bool(weights) and all(isinstance(value, Mapping) for value in weights.values())
    if nested:
        rows = [_numbers(r, "weights", weights.get(label, {})) for label in r.labels]
        named = dict.fromkeys(r.labels, bias) if not isinstance(bias, Mapping) else bias
        biases = [_numbers(r, "bias", named).get(label, 0.0) for label in r.labels]
        for option, by_label in (("weights", weights), ("bias", named)):
            if set(by_label) - set(r.labels):
                raise OptionError(r.name, option, "names an unknown label")
    else:
        rows, biases = _one_score(r)
    return Linear(
        r.name, r.space, r.classes, weights=tuple(rows), bias=tuple(biases),
        inputs=r.values["inputs"], softmax=r.values["softmax"],
    )  # fmt: skip


def _one_score(r: Request) -> tuple[list[dict[str, float]], list[float]]:
    """Read one table of weights: its score speaks for one label, the other label scores 0."""
    if r.classes != 2:
        raise OptionError(r.name, "weights", "needs a table per label")
    if isinstance(r.values["bias"], Mapping):
        raise OptionError(r.name, "bias", "must be a number, as weights is one table")
    weights = _numbers(r, "weights", r.values["weights"])
    place = 1 if r.values["label"] is None else r.label("label")
    rows: list[dict[str, float]] = [{}, {}]
    biases = [0.0, 0.0]
    rows[place], biases[place] = weights, float(r.values["bias"])
    return rows, biases


def _numbers(r: Request, option: str, table: Mapping[str, Any]) -> dict[str, float]:
    if any(isinstance(v, bool) or not isinstance(v, int | float) for v in table.values()):
        raise OptionError(r.name, option, "must hold numbers")
    return {key: float(value) for key, value in table.items()}


def _learning(kind: Callable[..., LearningRule]) -> Callable[[Request], Rule]:
    """Return the maker of a learning rule whose options are its constructor's."""
    return lambda r: kind(r.name, r.space, r.classes, **r.values)


def _committee(r: Request) -> Rule:
    preset, tables = r.values["preset"], r.values["members"]
    if tables and preset:
        raise OptionError(r.name, "members", "cannot be given beside a preset")
    if tables:
        members = [_member(r, table) for table in tables]
        return Committee(r.name, r.space, r.classes, members, clip=r.values["clip"])
    committee = PRESETS[preset or "kdi"](r.name, r.space, r.classes, seed=r.values["seed"])
    committee.clip = r.values["clip"]
    return committee


def _member(r: Request, table: Mapping[str, Any]) -> LearningRule:
    called = f"{r.name}/{table.get('name', table.get('kind'))}"
    try:
        member = make_rule({**table, "name": called}, r.space, r.labels, packages=r.packages)
    except LearnerError as error:
        raise OptionError(r.name, "members", str(error)) from error
    if not isinstance(member, LearningRule):
        raise OptionError(r.name, "members", f"{called} is of a kind that does not learn")
    return member


def _scaling(default: str, *extra: str) -> Option:
    texts = (*SCALERS, *extra)
    help_ = "online scaling of real features: z-score, its logarithm, or rank"
    return Option("scaling", "text", default, help_, choices=texts)


_SEED = Option("seed", "integer", 0, "seed of the random Fourier features", low=0)
_JOINT = Option("joint", "flag", False, "learn what the other learners leave unexplained")

_ALL = (
    Kind(
        "constant", "always the same label (the paper's rules)", False,
        (Option("label", "label", REQUIRED, "the label it gives"),),
        _constant,
    ),
    Kind(
        "threshold", "a cut on one real feature", False,
        (
            Option("feature", "text", REQUIRED, "name of the feature"),
            Option("value", "number", REQUIRED, "where to cut, in raw units"),
            Option("above", "label", REQUIRED, "the label where the feature is greater"),
            Option("below", "label", REQUIRED, "the label elsewhere"),
        ),
        _threshold,
    ),
    Kind(
        "linear", "fixed weights and bias", False,
        (
            Option("weights", "table", REQUIRED,
                   "weight by column (`age`, `sex=f`); a table per label for three or more"),
            Option("bias", "number|table", 0.0, "constant of the score; or a table by label"),
            Option("label", "label", None,
                   "with two labels: the one that a positive score means (default: the second)"),
            Option("inputs", "text", "raw", "raw values, or scaled into [0, 1] by the settings",
                   choices=("raw", "unit")),
            Option("softmax", "flag", True,
                   "whether the softmax of the scores gives probabilities"),
        ),
        _linear,
    ),
    Kind(
        "callable", "a Python function of your own", False,
        (Option("function", "text", REQUIRED, "package.module:function"),),
        _callable,
    ),
    Kind(
        "sklearn", "a fitted linear classifier of scikit-learn", False,
        (Option("model", "text", REQUIRED,
                "package.module:function; it takes no arguments and returns the classifier"),),
        _sklearn,
    ),
    Kind(
        "logistic", "logistic regression by stochastic gradient descent", True,
        (
            Option("rate", "number", 0.2, "step size", low=0, above=True, high=10),
            Option("l2", "number", 0.0, "pull of the weights towards zero", low=0, high=0.1),
            _scaling("zscore"),
            _JOINT,
        ),
        _learning(Logistic),
    ),
    Kind(
        "bayes", "Bayesian logistic regression, no step size to choose", True,
        (
            Option("prior", "number", 2.0, "variance of a weight before the first label",
                   low=1e-6, high=1e6),
            _scaling("log"),
            Option("fourier", "integer", 0, "random Fourier features to add; 0: linear",
                   low=0, high=2000),
            Option("spread", "number", 0.1, "variance of their frequencies; more bends more",
                   low=0, above=True, high=1e6),
            _SEED,
            _JOINT,
        ),
        _learning(BayesianLogistic),
    ),
    Kind(
        "naive_bayes", "naive Bayes on bins or Gaussians, and categories", True,
        (
            Option("likelihood", "text", "gaussian", "the likelihood of a real feature",
                   choices=("gaussian", "binned")),
            Option("bins", "integer", 8, "parts of a real feature's range, for binned",
                   low=1, high=1024),
        ),
        _learning(NaiveBayes),
    ),
    Kind(
        "lda", "linear discriminant analysis on ranks", True,
        (
            Option("prior", "number", 10.0, "weight of the prior, in rows", low=1e-6, high=1e6),
            Option("capacity", "integer", 256, "ranks are exact up to so many rows; an even number",
                   low=2, high=65536),
        ),
        _learning(RankLda),
    ),
    Kind(
        "cells", "cells that split where labels come: an adaptive partition", True,
        (
            Option("enough", "integer", 4,
                   "labels that a cell sees before it splits; choose more if labels are noisy",
                   low=2, high=10**6),
            Option("backoff", "number", 2.0, "labels that a cell borrows from the one around it",
                   low=0, above=True, high=1e6),
            Option("most", "integer", 1000, "the largest number of cells", low=1, high=100_000),
        ),
        _learning(AdaptiveCells),
    ),
    Kind(
        "committee", "mean of several learning rules' log-odds, perhaps weighted", True,
        (
            Option("preset", "text", None, "a tested set of members (default: kdi)",
                   choices=tuple(PRESETS)),
            Option("members", "tables", (), "tables of rules, instead of a preset"),
            Option("clip", "number", CLIP, "limit of each member's log-odds", low=0, above=True),
            _SEED,
        ),
        _committee,
    ),
    Kind(
        "river", "a classifier of River (the extra `river`)", True,
        (
            Option("model", "text", REQUIRED, "package.module:Class"),
            Option("arguments", "table", {}, "keyword arguments of the class"),
            _scaling("zscore", "none"),
        ),
        _river,
    ),
)  # fmt: skip

KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}
