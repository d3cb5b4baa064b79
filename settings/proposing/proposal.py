"""The settings file that `hb init` writes: complete, commented, and ready to use.

There are three proposals: the one for use (learners that fit one model together, which made the
fewest errors in `hb experiments single`), the same with a fusion that has a regret bound, and the
paper's own setting, for those who want to see its numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from string import Template
from typing import Any

from learners.local.partition import MAX_CELLS
from settings.render import inline
from settings.sections.base import is_name


@dataclass(frozen=True)
class Proposal:
    """What a proposed settings file is made from.

    learners   each learner's features, as the settings file writes them
    left_out   columns that are not features, and why
    horizon    the labelled instances to plan for
    paper      propose the paper's own setting
    bound      propose a fusion with a bound on its regret
    """

    name: str
    labels: Sequence[str]
    positive: str
    learners: Mapping[str, Sequence[Mapping[str, Any]]]
    origin: str
    id_column: str | None = None
    label_column: str | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    horizon: int = 10_000
    paper: bool = False
    bound: bool = False
    subject_column: str | None = None


def split(features: Sequence[Any], learners: int) -> dict[str, list[Any]]:
    """Deal features out to learners in runs of equal length, give or take one.

    >>> split(["a", "b", "c", "d", "e"], 2)
    {'ll1': ['a', 'b', 'c'], 'll2': ['d', 'e']}
    """
    size, extra = divmod(len(features), learners)
    starts = [i * size + min(i, extra) for i in range(learners + 1)]
    return {f"ll{i + 1}": list(features[starts[i] : starts[i + 1]]) for i in range(learners)}


def proposed_text(proposal: Proposal) -> str:
    """Return the file's text."""
    middle = _PAPER if proposal.paper else _USE
    return Template(_TOP + middle + _REST).substitute(
        origin=proposal.origin,
        name=inline(proposal.name),
        labels=inline(list(proposal.labels)),
        positive=inline(proposal.positive),
        columns="\n".join(_columns(proposal)),
        learners="\n\n".join(_learners(proposal)),
        constants="\n\n".join(_constants(proposal)),
        positive_rule=inline(_rule_names(proposal.labels)[proposal.positive]),
        cuts=_cuts(proposal),
        horizon=proposal.horizon,
        fusion=_BOUNDED if proposal.bound else _STACKED,
    )


def _cuts(proposal: Proposal) -> int:
    """Cut real features in two, unless that makes more cubes than can be numbered."""
    for features in proposal.learners.values():
        if prod(len(feature.get("categories", "xx")) for feature in features) > MAX_CELLS:
            return 1
    return 2


def _columns(proposal: Proposal) -> Iterator[str]:
    if proposal.id_column:
        yield f"id = {inline(proposal.id_column)}"
    else:
        yield '# id = "…"  # without such a column, ids are generated'
    yield f"label = {inline(proposal.label_column)}" if proposal.label_column else '# label = "…"'
    if proposal.subject_column:
        yield f"subject = {inline(proposal.subject_column)}  # whose visit a row is"
    for name, reason in proposal.left_out.items():
        yield f"# left out: {inline(name)}: {reason}"


def _learners(proposal: Proposal) -> Iterator[str]:
    for name, features in proposal.learners.items():
        rows = "".join(f"    {inline(dict(feature))},\n" for feature in features)
        yield f"[learners.{name}]\nfeatures = [\n{rows}]"


def _constants(proposal: Proposal) -> Iterator[str]:
    for label, name in _rule_names(proposal.labels).items():
        yield f'[defaults.rules.{name}]\nkind = "constant"\nlabel = {inline(label)}' + (
            "\nweight = 1.0  # the paper's h: above 1, fewer positives are missed"
            if label == proposal.positive
            else ""
        )


def _rule_names(labels: Sequence[str]) -> dict[str, str]:
    """Return the name of each label's rule: the label itself, if all labels are legal names.

    >>> _rule_names(["benign", "malignant"]), _rule_names(["0", "1"])
    ({'benign': 'benign', 'malignant': 'malignant'}, {'0': 'label0', '1': 'label1'})
    """
    legal = all(is_name(label) and label != "hash" for label in labels)
    return {label: label if legal else f"label{i}" for i, label in enumerate(labels)}


_TOP = """\
# The settings of an ensemble, written by `hb init` for $origin.
#   hb settings check       list every problem with its line
#   hb settings show        print all keys with their defaults
#   hb settings reference   print what each key means
#   hb features fit F.csv   give the features fixed scales, fitted to a file

version = 1
name = $name  # becomes part of topic names, consumer groups and metrics
labels = $labels
positive = $positive  # the label that must not be missed: the miss rate is about it

[columns]  # the columns of CSV files that are not features
$columns
"""

_USE = """
# What all learners have in common, unless [learners.<name>] says otherwise.
[defaults]
# A label shows of every rule whether it was right, so it counts for all of them. (With the paper's
# "bandit" feedback it counts only for the rule that was chosen.)
feedback = "full"
# So there is little to explore. (1 is the paper's theory.)
exploration = 0.01
# Each number is cut in two at its mean, and accuracy is counted by cube. (1: no cuts, one cube.)
# Means and deviations are learned online, unless a feature has numbers of its own.
cuts = $cuts
# Most cubes see few instances: until they have trials of their own, they borrow this many from the
# larger cells around them.
backoff = 20
# The number of labelled instances to plan for. Learning goes on after that.
horizon = $horizon

# One rule: three classifiers that learn online (logistic regression, Bayesian logistic regression,
# the same with random features), weighed by how well they have done. The learners fit one model
# together: each adds its part of the log-odds, and a label comes back with the sum of the others'
# parts, one number per label.
# No learner ever sees another's features. With the preset "kdi" each learner learns on its own,
# which is better where many labels are wrong. If you add rules, such as a Python function of your
# own, each learner chooses the best one in every cube.
[defaults.rules.committee]
kind = "committee"
preset = "mixed"

# The local learners. Each sees only its own features; others get its predictions and counts.

$learners

[ensemble]
$fusion
# How long a diagnosis waits for the slowest learner; then it is made without it.
fusion_timeout = "5s"
# How long an instance waits for its label; then it is dropped, and nothing is learned from it.
label_ttl = "30d"
# fnr_target = 0.03  # the miss rate to stay below; an alert is raised above it
# miss_target = 0.05  # how often a label may be excluded wrongly; patients in doubt are referred
# per_target = 0.10  # the error rate above which an alert is raised
"""

_STACKED = """\
# Each learner sends how sure it is (its log-odds), and a Bayesian logistic regression learns online
# how much each is worth, starting from their sum. Best in experiments, but without a regret bound;
# `hb init --bound` proposes a fusion that has one.
mode = "stack"
options = { prior_mean = 1.0, prior_variance = 0.05 }"""

_BOUNDED = """\
# Four ways of fusing run side by side, and each diagnosis follows one of them, drawn by weights
# that fall with its errors (Hedge). After T labels the expected errors exceed those of the best of
# the four by at most 2 sqrt(T ln 4), whatever the stream does, if each label comes before the next
# patient (Theorem 2). With late labels the bound is larger: `hb plan` shows it. It is not about
# answers that miss targets change, nor about labels that are corrected. Without --bound, `hb init`
# proposes "stack", which errs a little less on most streams and promises nothing.
mode = "committee"
options = { use = "sample" }"""

_PAPER = """
# The setting of the paper's experiments. For use, run `hb init` without --paper.
[defaults]
horizon = 10000  # T
alpha = 1.65  # with 10 features and this horizon, each is cut in two
lipschitz = 1.0  # L; only the bounds depend on it
feedback = "bandit"  # a label counts only for the rule that was chosen
# The paper's theory has 1 here. Its tables need far less.
exploration = 0.005
ties = $positive_rule

# One rule per label, which always gives it: all that is learned is where each of them is right.
$constants

# The local learners. Each sees only its own features.

$learners

[ensemble]
mode = "wm"  # or "ah"; with [ensemble.context] also "ch" and "ch-vote"
fusion_timeout = "5s"
label_ttl = "30d"
"""

_REST = """
[topics]
partitions = 1  # more allow several workers to share one role; choose before the first start
replication = 1  # 3 on a cluster

[broker]
bootstrap = ""  # "host:port,host:port"; empty: the broker that `hb broker up` runs

# [broker.security]
# protocol = "sasl_ssl"
# ca_file = "ca.pem"
# username = "hb"
# password = {env = "HB_PASSWORD"}  # a secret is never written here

[worker]
web_host = "127.0.0.1"  # console and metrics: this machine only; others need web_token or TLS
web_port = 6066
"""
