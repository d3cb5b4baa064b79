"""The experiments' simulation and the agents of the product make the same predictions."""

import msgspec
import numpy as np
import pytest

from audit.end_to_end import recompute
from experiments.paper.parallel_runs import LocalSettings, simulate_fusion, simulate_learners
from experiments.paper.protocol import make_runs
from learners.assessment.assessment import counts_of
from learners.fusion.registry import make_fusion
from learners.local.iup import Feedback
from schemas.records import Diagnosis, Label, Prediction
from schemas.writing import encode
from settings.loading import load_settings
from tests.inline_pipeline import Inline, configured, lived
from tests.runs_as_records import instances, labels, learner_name, settings_text

SEED, H, STEPS = 12, 2.5, 150


def records(live, topic, kind):
    """Return what was published on a topic, by instance id."""
    values = [value for batch in live.published[topic] for value in batch.values]
    return [msgspec.json.decode(value, type=kind) for value in values]


@pytest.mark.parametrize("mode", ["wm", "ah"])
@pytest.mark.parametrize(
    "settings",
    [LocalSettings(), LocalSettings(feedback=Feedback.FULL, exploration=0.0, preferred=None)],
    ids=["paper", "full feedback"],
)
def test_a_run_streamed_through_the_agents_gives_the_simulated_predictions(
    tmp_path, settings, mode
):
    runs = make_runs(2, steps=STEPS, seed=SEED).with_labels(missing=0.2)
    votes = simulate_learners(runs, settings, np.array([H]))
    fused = simulate_fusion(lambda c: make_fusion(mode, 3, 2, cubes=c, prefer=1), runs, votes)
    file = tmp_path / "ensemble.toml"
    file.write_text(settings_text(runs, 1, settings, H, mode))
    live = Inline(load_settings(file))
    known_labels = {label.id: label for label in labels(runs, SEED, 1)}
    assert len(known_labels) < STEPS
    for t, sent in enumerate(instances(runs, SEED, 1)):
        time = 1_000_000 + 10 * t
        for name, record in sent.items():
            live.publish(live.topics.instances(name), b"", encode(record), at=time)
        label = known_labels.get(sent[learner_name(0)].id)
        if label is not None:
            live.publish(live.topics.labels, b"", encode(label), at=time + 5)
    names = list(runs.data.labels)
    predictions = records(live, live.topics.predictions, Prediction)
    for i in range(3):
        mine = [
            names.index(prediction.label)
            for prediction in predictions
            if prediction.learner == learner_name(i)
        ]
        assert mine == votes.labels[:, 0, 1, i].tolist()
    diagnoses = records(live, live.topics.diagnoses, Diagnosis)
    assert [names.index(diagnosis.label) for diagnosis in diagnoses] == fused.labels[
        :, 0, 1
    ].tolist()


@pytest.mark.parametrize("target", ["0.2", "{ ill = 0.2 }"])
def test_miss_targets_run_in_the_agents_and_are_audited(tmp_path, target):
    live = lived(configured(tmp_path, f"ensemble.miss_target={target}"), 120)
    findings, _ = recompute(live.observed())
    assert findings.clean, findings.list()
    counts = counts_of(live.agents["ensemble"].tables["assessment"].rows(np.arange(2)))
    diagnoses = {
        diagnosis.id: diagnosis for diagnosis in records(live, live.topics.diagnoses, Diagnosis)
    }
    truth = {label.id: label.label for label in records(live, live.topics.labels, Label)}
    ill = [diagnoses[key] for key, label in truth.items() if label == "ill"]
    missed = [
        diagnosis for diagnosis in ill if "ill" not in (*diagnosis.cannot_exclude, diagnosis.answer)
    ]
    assert (counts.cases[1], counts.missed[1]) == (len(ill), len(missed))
    assert counts.missed[1] > 0
    referred = sum(diagnosis.answer == "refer" for diagnosis in diagnoses.values())
    assert counts.referred.sum() == referred
    assert counts.answered.sum() == len(diagnoses) - referred > 0
