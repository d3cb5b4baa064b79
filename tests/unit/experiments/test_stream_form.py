"""A run in the form of settings and records gives what the simulation gives."""

import numpy as np

from experiments.paper.lanes import LocalSettings, simulate_fusion, simulate_learners
from experiments.paper.protocol import make_runs
from experiments.paper.stream_form import instances, labels, learner_name, settings_text
from learners.fusion import Ballot
from learners.fusions import make_fusion
from learners.seeds import seeds_of
from streams.build import fusion, local_learner
from streams.settings import load_settings

SEED, H = 12, 2.5


def test_learners_built_from_settings_say_what_the_lanes_say(tmp_path):
    runs, settings = make_runs(2, steps=120, seed=SEED), LocalSettings()
    votes = simulate_learners(runs, settings, np.array([H]))
    fused = simulate_fusion(lambda c: make_fusion("wm", 3, 2, cubes=c, prefer=1), runs, votes)
    file = tmp_path / "ensemble.toml"
    for run in range(2):
        file.write_text(settings_text(runs, run, settings, H))
        built = load_settings(file)
        learners = {name: local_learner(built, name) for name in built.learners}
        ensemble = fusion(built)
        told = {label.id: label.label for label in labels(runs, SEED, run)}
        for t, sent in enumerate(instances(runs, SEED, run)):
            said = {}
            seeds = seeds_of([sent[learner_name(0)].id])
            for name, record in sent.items():
                row = np.array([[record.x[key] for key in learners[name].space.names]])
                said[name] = learners[name].decide(row, seeds)
            ballot = Ballot.of(
                np.array([[one.labels[0] for one in said.values()]]), seeds, classes=2
            )
            verdict = ensemble.decide(ballot)
            assert ballot.labels[0].tolist() == votes.labels[t, 0, run].tolist()
            assert verdict.labels[0] == fused.labels[t, 0, run]
            truth = np.array([built.labels.index(told[sent[learner_name(0)].id])])
            for name, one in said.items():
                chosen = one.choices
                learners[name].learn(
                    phase=chosen.phase,
                    cubes=chosen.cubes,
                    rules=chosen.rules,
                    votes=one.votes,
                    truth=truth,
                )
            ensemble.learn(ballot, verdict, truth)
