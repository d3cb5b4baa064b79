"""Key by key: what may change under stored state, and what gives it another meaning."""

import pytest

from settings.fingerprint import CHANGES, ensemble_meaning, learner_meaning
from settings.keys import all_keys
from settings.loading import load_settings
from tests.settings_files import write

TOML = """
version = 1
name = "toy"
labels = ["no", "yes"]
positive = "yes"

[defaults]
horizon = 1000
cuts = 2

[defaults.rules.never]
kind = "constant"
label = "no"

[defaults.rules.learned]
kind = "logistic"
rate = 0.1

[learners.left]
features = [
    {name = "age", low = 0, high = 100},
    {name = "mass", scale = "zlog", mean = 70.0, std = 12.5},
    {name = "dose", scale = "quantile", knots = [0.0, 1.0, 5.0]},
    {name = "sex", categories = ["f", "m"]},
]

[learners.right]
doubling = 100
features = [{name = "age", low = 0, high = 100}]

[ensemble]
mode = "stack"
fnr_target = 0.1
context.features = [{name = "age", low = 0, high = 100}]
"""

AGE = '{name = "age", low = 0, high = 100}'
MASS = '{name = "mass", scale = "zlog", mean = 70.0, std = 12.5}'
DOSE = '{name = "dose", scale = "quantile", knots = [0.0, 1.0, 5.0]}'
SEX = '{name = "sex", categories = ["f", "m"]}'


def features(*rows):
    return f"learners.left.features=[{', '.join(rows)}]"


REFUSED = {
    "labels": ['labels=["yes", "no"]', 'labels=["no", "yes", "perhaps"]'],
    "positive": ['positive="no"'],
    "topics.partitions": ["topics.partitions=3"],
    "learners.left.features": [
        features(MASS, AGE, DOSE, SEX),
        features(AGE, MASS, DOSE),
        features(AGE.replace("age", "years"), MASS, DOSE, SEX),
        features(AGE.replace("100", "120"), MASS, DOSE, SEX),
        features(AGE.replace("= 0", "= 1"), MASS, DOSE, SEX),
        features(AGE, MASS.replace("70.0", "71.0"), DOSE, SEX),
        features(AGE, MASS.replace("12.5", "13"), DOSE, SEX),
        features(AGE, MASS, DOSE.replace("5.0", "6.0"), SEX),
        features(AGE, '{name = "mass", low = 0, high = 200}', DOSE, SEX),
        features(AGE, MASS, DOSE, SEX.replace('"f", "m"', '"m", "f"')),
    ],
    "learners.left.cuts": ["learners.left.cuts=3", "defaults.cuts=4"],
    "learners.left.doubling": ["learners.left.doubling=100"],
    "learners.right.doubling": ["learners.right.doubling=200"],
    "learners.left.feedback": ['learners.left.feedback="full"', 'defaults.feedback="full"'],
    "learners.left.rules.never": ['defaults.rules.never.label="yes"'],
    "learners.left.rules.learned": [
        "defaults.rules.learned.rate=0.2",
        'defaults.rules.learned={kind = "bayes"}',
    ],
    "learners.left.rules": ['defaults.rules.more={kind = "constant", label = "yes"}'],
    "ensemble.mode": ['ensemble.mode="confidence"'],
    "ensemble.active": ["ensemble.active=true"],
    "ensemble.options": ["ensemble.options={clip = 3.0}"],
    "ensemble.context": [
        "ensemble.context.cuts=3",
        f"ensemble.context.features=[{AGE.replace('100', '120')}]",
        f"ensemble.context.features=[{AGE}, {SEX}]",
    ],
}
"""Overrides, by the key that a refusal names."""

FREE = [
    'columns={id = "number", label = "truth"}',
    "learners.left.horizon=50_000",
    "defaults.horizon=77",
    "defaults.alpha=2.0",
    "learners.left.alpha=0.5",
    "learners.left.lipschitz=3.0",
    "learners.left.exploration=0.01",
    'learners.left.ties="never"',
    "learners.left.max_cuts=5",
    "learners.left.backoff=2.0",
    "defaults.rules.never.weight=2.0",
    'ensemble.prefer="no"',
    'ensemble.fusion_timeout="9s"',
    'ensemble.label_ttl="3d"',
    "ensemble.max_pending=7",
    "ensemble.max_remembered=7",
    "ensemble.fnr_target=0.2",
    "ensemble.miss_target=0.1",
    "ensemble.min_labels=3",
    "ensemble.per_target=0.2",
    "topics.replication=3",
    "topics.min_in_sync=1",
    'topics.retention.instances="1d"',
    'topics.retention.contexts="1d"',
    'topics.retention.predictions="1d"',
    'topics.retention.labels="1d"',
    'topics.retention.feedback="1d"',
    'topics.retention.diagnoses="1d"',
    'topics.retention.deadletters="1d"',
    'broker.bootstrap="elsewhere:9092"',
    'broker.request_timeout="9s"',
    'broker.security={protocol = "ssl"}',
    'worker.web_host="127.0.0.2"',
    "worker.web_port=1",
    "worker.console=false",
    "worker.metrics=false",
    'worker.state="elsewhere"',
    "worker.batch_size=5",
    'worker.transaction_timeout="9s"',
    'worker.session_timeout="9s"',
]


def meaning(folder, *overrides):
    """Return what all state of an ensemble depends on, by agent and key."""
    settings = load_settings(write(folder, TOML), overrides)
    agents = {name: learner_meaning(settings, name) for name in settings.learners}
    return {**agents, "ensemble": ensemble_meaning(settings)}


def changed(before, after):
    return {
        key
        for agent in before
        for key, digest in before[agent].items()
        if after[agent].get(key) != digest
    }


@pytest.mark.parametrize(
    ("key", "override"),
    [(key, change) for key, overrides in REFUSED.items() for change in overrides],
)
def test_what_gives_state_its_meaning_is_told_apart(tmp_path, key, override):
    assert key in changed(meaning(tmp_path), meaning(tmp_path, override))


@pytest.mark.parametrize("override", FREE)
def test_what_may_change_leaves_the_meaning_as_it_is(tmp_path, override):
    assert changed(meaning(tmp_path), meaning(tmp_path, override)) == set()


def test_eta_scale_may_change(tmp_path):
    hedge = 'ensemble.mode="ch"'
    faster = meaning(tmp_path, hedge, "ensemble.eta_scale=3.0")
    assert changed(meaning(tmp_path, hedge), faster) == set()


def test_state_of_earlier_versions_under_fnr_control_is_read(tmp_path):
    assert "ensemble.fnr_control" in meaning(tmp_path)["ensemble"]


def test_order_of_learners_and_rules_counts(tmp_path):
    before = meaning(tmp_path)
    blocks = TOML.split("\n\n")
    left, right = (next(b for b in blocks if f"[learners.{n}]" in b) for n in ("left", "right"))
    swapped = TOML.replace(left, "@").replace(right, left).replace("@", right)
    settings = load_settings(write(tmp_path, swapped))
    assert ensemble_meaning(settings)["learners"] != before["ensemble"]["learners"]
    never, learned = (next(b for b in blocks if f"rules.{n}]" in b) for n in ("never", "learned"))
    swapped = TOML.replace(never, "@").replace(learned, never).replace("@", learned)
    settings = load_settings(write(tmp_path, swapped))
    after = learner_meaning(settings, "left")
    assert {k for k in after if after[k] != before["left"][k]} == {"learners.left.rules"}


def test_cuts_by_the_formula_count_as_what_they_lead_to(tmp_path):
    """The same number written down, or from another horizon, is the same."""
    bare = TOML.replace("cuts = 2\n", "")

    def digests(*overrides):
        return learner_meaning(load_settings(write(tmp_path, bare), overrides), "left")

    key = "learners.left.cuts"
    assert digests()[key] == digests("learners.left.horizon=1001")[key]
    assert digests()[key] == digests("learners.left.cuts=4")[key]
    assert digests()[key] != digests("learners.left.horizon=1_000_000")[key]
    assert digests()[key] != digests("learners.left.alpha=9.0")[key]
    assert digests()[key] != digests("learners.left.max_cuts=1")[key]


def test_every_key_is_classified_once():
    rows = [(key, change.free) for change in CHANGES for key in change.keys]
    for key in all_keys():
        path = ".".join(key.path)
        if key.inner is not None or path == "version":
            continue
        matching = {free for pattern, free in rows if _covers(pattern, path)}
        assert len(matching) == 1, (path, matching)


def _covers(pattern, path):
    if pattern.endswith(".*"):
        return path.startswith(pattern[:-1])
    return pattern == path or (pattern == "learners.*.rules" and path == "learners.*.rules.*.kind")
