"""What rows of state hold of a patient's features, for every kind of rule that learns."""

import base64
import re
import struct
import zlib

import numpy as np
import pytest

from agents.models import EARLIER, MODELS
from agents.state_encoding import pack_state, unpack_state
from agents.testing import Pipeline
from learners.rules.registry import KINDS, PRESETS
from tests.inline_pipeline import configured

TEXT = re.compile(rb"-?\d+\.\d+(?:[eE][-+]?\d+)?")
PATIENTS = 40
LEARNING = {
    **{kind: f'{{kind="{kind}"}}' for kind, rule in KINDS.items() if rule.learns},
    **{f"preset {name}": f'{{kind="committee", preset="{name}"}}' for name in PRESETS},
    "logistic, ranks": '{kind="logistic", scaling="rank"}',
    "bayes, ranks": '{kind="bayes", scaling="rank"}',
    "bayes, z-scores": '{kind="bayes", scaling="zscore", fourier=5}',
    "naive bayes, binned": '{kind="naive_bayes", likelihood="binned"}',
    "lda, small": '{kind="lda", capacity=8}',
    "river": '{kind="river", model="river.linear_model:LogisticRegression"}',
}
NEIGHBOURS = '{kind="river", scaling="none", model="river.neighbors:KNNClassifier"}'
"""Keeps rows by design: an example of what a user's own choice of a class can mean."""


def settings_of(folder, rule, *, keys=False, feature='{name="z", low=0.0, high=1.0}'):
    overrides = [
        f"learners.b.rules={{well={rule}}}", f"learners.b.features=[{feature}]",
        'rules.packages=["river"]',
    ]  # fmt: skip
    if keys:
        (folder / "key").write_text(base64.b64encode(bytes(range(32))).decode())
        overrides.append(f'privacy.keys={{b=[{{id="k", file="{folder / "key"}"}}]}}')
    return configured(folder, *overrides)


def planted(k):
    """Return a value that arithmetic on coarse numbers does not hit."""
    return 0.1 + 0.8 * ((k * 0.6180339887498949) % 1.0)


def taught(settings, patients):
    """Return a pipeline after so many labelled patients, and the values that they had."""
    pipeline, values = Pipeline(settings), []
    for k in range(patients):
        values.append(planted(k))
        pipeline.patient(f"p{k}", {"x": 0.2, "y": 0.3, "z": values[-1]})
        pipeline.label(f"p{k}", "ill" if values[-1] > 0.5 else "well")
    pipeline.patient("waits", {"x": 0.2, "y": 0.3, "z": 0.5})
    pipeline.restart()
    assert not pipeline.dead_letters
    return pipeline, values


def unpacked(data):
    """Yield stored bytes, and whatever is compressed within them."""
    yield data
    for start in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", data):
        try:
            yield zlib.decompressobj().decompress(data[start.start() :])
        except zlib.error:
            continue


def holds(data, value):
    """Tell whether bytes hold a value: as a double either way round, or as text."""
    forms = struct.pack("<d", value), struct.pack(">d", value)
    for part in unpacked(data):
        if any(form in part for form in forms):
            return True
        if any(float(text) == value for text in TEXT.findall(part)):
            return True
    return False


def places(pipeline, values):
    """Return the tables whose rows hold any of the values, apart from the waiting features."""
    found = set()
    for name, agent in pipeline.agents.items():
        for table in agent.tables.values():
            rows = table.items() if hasattr(table, "get") else ()
            found |= {
                (name, table.name)
                for _, row in rows
                if table.name != "features" and any(holds(row, value) for value in values)
            }
    return found


@pytest.mark.parametrize("rule", LEARNING)
def test_no_model_of_many_patients_holds_the_exact_value_of_one(rule, tmp_path):
    settings = settings_of(tmp_path, LEARNING[rule])
    assert places(*taught(settings, PATIENTS)) == set()


@pytest.mark.parametrize(
    "feature",
    [
        '{name="z"}',
        '{name="z", scale="zlog", mean=0.5, std=0.2}',
        '{name="z", scale="quantile", knots=[0.0, 0.3, 0.5, 1.0]}',
    ],
)
def test_nor_does_one_whose_feature_has_another_scale(feature, tmp_path):
    settings = settings_of(tmp_path, LEARNING["preset kdi"], feature=feature)
    assert places(*taught(settings, PATIENTS)) == set()


@pytest.mark.parametrize("rule", [*LEARNING.values(), NEIGHBOURS])
def test_after_the_first_label_only_the_learner_holds_the_value(rule, tmp_path):
    """A mean of one value is that value: nobody else may read the models."""
    pipeline, values = taught(settings_of(tmp_path, rule), 1)
    assert places(pipeline, values) <= {("local.b", MODELS)}
    tables = pipeline.agents["local.b"].tables
    assert tables[MODELS].secret
    assert not len(tables[EARLIER])


@pytest.mark.parametrize("patients", [1, PATIENTS])
@pytest.mark.parametrize("rule", [*LEARNING.values(), NEIGHBOURS])
def test_with_keys_no_row_holds_a_value_that_can_be_read(rule, patients, tmp_path):
    settings = settings_of(tmp_path, rule, keys=True)
    assert places(*taught(settings, patients)) == set()


def test_models_of_earlier_versions_are_moved_and_lose_their_values(tmp_path):
    """They were in a table that every worker may read, with values as they were."""
    settings = settings_of(tmp_path, LEARNING["preset kdi"])
    pipeline, values = taught(settings, PATIENTS)
    agent = pipeline.agents["local.b"]
    rows = np.linspace(0.0, 1.0, 50)[:, None]
    before = pipeline.rule("b", "well").log_odds(rows)
    state = unpack_state(agent.tables[MODELS].get(b"well"))
    agent.tables[MODELS].delete(b"well")
    agent.tables[EARLIER].put(b"well", pack_state(earlier(state, values)))
    assert places(pipeline, values) == {("local.b", EARLIER)}
    pipeline.restart()
    assert places(pipeline, values) == set()
    after = unpack_state(pipeline.agents["local.b"].tables[MODELS].get(b"well"))
    assert (after["began"], state["began"]) == (1, 2)
    np.testing.assert_allclose(pipeline.rule("b", "well").log_odds(rows), before, rtol=1e-6)


def earlier(state, values):
    """Return a model as earlier versions kept it: exact values in sketches, the first as shift."""
    old = {k: v for k, v in state.items() if k.split(".")[-1] not in ("grid", "settled", "began")}
    for key in [key for key in old if key.endswith("shift")]:
        part, mean = key.removesuffix("shift"), old[key].copy()
        old[key], count = np.array(values[:1]), int(old[f"{part}count"][0])
        moved = mean - old[key]
        total = old[f"{part}total"]
        old[f"{part}squares"] = old[f"{part}squares"] + 2 * moved * total + count * moved**2
        old[f"{part}total"] = total + count * moved
    for key in [key for key in old if key.endswith("ranks.values")]:
        old[key] = np.array(values)[:, None]
    return old


def test_the_search_finds_a_value_in_every_form():
    value = planted(3)
    for form in (struct.pack("<d", value), struct.pack(">d", value), b"[%r]" % value):
        assert holds(b"x" + form, value)
        assert holds(b"x" + zlib.compress(form * 3), value)
    assert not holds(struct.pack("<d", planted(4)), value)


def test_the_search_finds_what_a_mean_of_one_and_neighbours_hold(tmp_path):
    for rule in (LEARNING["bayes"], NEIGHBOURS):
        assert places(*taught(settings_of(tmp_path, rule), 1)) == {("local.b", MODELS)}
