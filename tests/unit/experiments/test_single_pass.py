"""Single passes: the product's learners in a loop, River beside them, and the controller live."""

import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from experiments.paper.rates import rates
from experiments.process_pool import spread
from experiments.single_pass.bootstrap import gap
from experiments.single_pass.control import TARGET, controlled
from experiments.single_pass.fused_passes import Pass, at_limit, fuse, truths
from experiments.single_pass.local_passes import Recipe, Task, _pass, listen
from experiments.single_pass.methods import BOUNDED, OURS, PROPOSED, RECIPES
from experiments.single_pass.orders import REPORTED, TUNED, make_order
from experiments.single_pass.river_peers import (
    BEST,
    PEERS,
    TRIED,
    river_model,
    river_pass,
)
from experiments.single_pass.scored_passes import by_patient
from experiments.single_pass.single_pass import as_runs, paper_scores
from experiments.single_pass.tuning import METHODS
from learners.arrays.types import MISSING
from learners.fusion.base import Ballot
from learners.theory.promises import miss_rate_gaps
from settings.loading import source_of, validate
from settings.proposing.proposal import Proposal, proposed_text

LOGISTIC = Recipe(rules=({"kind": "logistic"},))


@pytest.mark.parametrize(("name", "bound"), [(PROPOSED, False), (BOUNDED, True)])
def test_what_is_called_proposed_is_what_hb_init_writes(name, bound):
    proposal = Proposal(
        name="e", labels=("a", "b"), positive="b", learners={"x": [{"name": "f"}]}, origin="a test",
        bound=bound,
    )  # fmt: skip
    written = validate(source_of(proposed_text(proposal), Path("ensemble.toml"), []))
    method, ensemble = OURS[name], written.ensemble
    rules = [{"kind": r.kind, **r.options} for r in written.learners["x"].rules.values()]
    assert rules == list(RECIPES[method.recipe].rules)
    assert (ensemble.mode, dict(ensemble.options)) == (method.mode, dict(method.options))


def test_orders_depend_on_seed_and_number_only():
    a, b = make_order("wdbc", 1, 4), make_order("wdbc", 1, 4)
    assert (a.patients == b.patients).all()
    assert sorted(a.patients) == list(range(569))
    assert (make_order("wdbc", 2, 4).patients != a.patients).any()
    assert REPORTED != TUNED
    flipped = make_order("segments", 1, 0, flipped=0.2)
    assert (flipped.told != flipped.truth).mean() == pytest.approx(0.2, abs=0.03)


def test_each_patient_is_predicted_before_its_label():
    task = Task("wdbc", 1, 0, LOGISTIC)
    heard = listen(task)
    order = task.order()
    # Nothing is known of the first patient, so no learner has an opinion.
    assert np.isnan(heard.log_odds[0]).all()
    assert (heard.labels[0] == MISSING).all()
    accuracy = (heard.labels[100:] == order.truth[100:, None]).mean()
    assert accuracy > 0.85


def test_a_label_changes_only_what_is_said_after_it():
    order = make_order("wdbc", 1, 0)
    labels = order.told.copy()
    labels[50] = 1 - labels[50]
    columns = order.columns[0]
    log_odds = [
        _pass(LOGISTIC.learner(order, columns), sequence, columns).log_odds
        for sequence in (order, replace(order, told=labels))
    ]
    np.testing.assert_array_equal(log_odds[0][:51], log_odds[1][:51])
    assert (log_odds[0][51:] != log_odds[1][51:]).any()


def test_passes_in_one_batch_equal_passes_alone():
    tasks = [Task("wdbc", 3, number, LOGISTIC) for number in range(3)]
    orders = [task.order() for task in tasks]
    heard = spread(listen, tasks, jobs=1)
    for name in ("kdi, stack", "kdi, odds", "kdi, WM"):
        maker = OURS[name].maker(3, 2, 1)
        together = fuse(maker, heard, orders)
        for r, (opinions, order) in enumerate(zip(heard, orders, strict=True)):
            fusion = maker(1)
            for t in range(569):
                at = slice(t, t + 1)
                ballot = Ballot.of(
                    opinions.labels[at],
                    order.seeds[at],
                    classes=2,
                    accuracy=opinions.accuracy[at],
                    log_odds=opinions.log_odds[at],
                )
                fused = fusion.decide(ballot)
                # Of the first patient nobody has an opinion: the preferred label is the guess.
                label = fused.labels[0] if ballot.heard[0] else fusion.prefer
                assert label == together.labels[t, r]
                fusion.learn(ballot, fused, order.told[at])


def test_work_on_two_cores_is_the_same_and_in_order():
    numbers = [float(n) for n in range(20)]
    assert (
        spread(sqrt, numbers, jobs=2) == spread(sqrt, numbers, jobs=1) == list(map(sqrt, numbers))
    )


def running(pid):
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def test_workers_end_when_their_parent_is_killed():
    code = (
        "import time; from experiments.process_pool import spread;"
        " spread(time.sleep, [99, 99], jobs=2)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    deadline = time.monotonic() + 120
    # Two workers, and the process that multiprocessing uses to clean up.
    while len(workers := children.read_text().split()) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.0)  # they are starting
    assert all(map(running, workers))
    parent.kill()
    parent.wait()
    while any(map(running, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(running, workers))


@pytest.mark.parametrize("name", PEERS)
def test_rivers_models_learn(name):
    model = river_model(name, 2)
    rng = np.random.default_rng(0)
    right = 0
    for t in range(150):
        x = {"a": float(rng.normal()), "b": float(rng.normal())}
        y = int(x["a"] > 0)
        chances = model.predict_proba_one(x)
        right += int(t >= 75 and chances.get(y, 0.0) > 0.5)
        model.learn_one(x, y)
    assert right > 50


def test_river_sees_all_features_and_no_label_early():
    labels, odds = river_pass((Task("wdbc", 1, 0), BEST))
    assert odds[0] == 0
    truth = Task("wdbc", 1, 0).order().truth
    assert (labels[100:] != truth[100:]).mean() < 0.08


def test_the_papers_learners_run_in_single_passes():
    orders = [Task("wdbc", 1, number).order() for number in range(2)]
    runs = as_runs(orders)
    assert (runs.draws == [order.patients for order in orders]).all()
    for score in paper_scores(orders).values():
        assert 5 < score.plain.mean[0] < 40


def test_the_limit_is_kept_with_the_lowest_per():
    truth = np.array([[1], [1], [0], [0]])
    scored = Pass(np.zeros((4, 1), int), np.array([[2.0], [-1.0], [-2.0], [0.0]]))
    best = at_limit(scored, truth)
    assert best is not None
    assert best[0].mean[2] == 0
    assert best[0].mean[1] == 50


def test_proposed_recipe_is_the_products_preset():
    task = Task("wdbc", 1, 0)
    order = task.order()
    learner = RECIPES["kdi"].learner(order, order.columns[0])
    assert [rule.name for rule in learner.rules] == ["committee"]
    assert truths([order]).shape == (569, 1)


def test_live_control_keeps_the_bound_on_real_scores():
    task = Task("wdbc", 1, 0, LOGISTIC)
    order = task.order()
    plain = fuse(OURS["kdi, stack"].maker(3, 2, 1), [listen(task)], [order])
    twice = np.repeat(plain.odds, 2, axis=1), np.repeat(order.truth[:, None], 2, axis=1)
    live = controlled(*twice, min_labels=0)
    assert (live.labels[:, 0] == live.labels[:, 1]).all(), "streams do not concern each other"
    assert live.answered.all(), "with one label controlled, nobody is referred"
    fnr = rates(live.labels[:, :1], order.truth[None]).mean[2] / 100
    below, above = miss_rate_gaps(TARGET, int((order.truth == 1).sum()))
    assert TARGET - below <= fnr <= TARGET + above
    early = controlled(*twice).answered[:, 0]
    assert not early[:10].any()
    assert early[10:].all()


def test_the_bootstrap_over_patients_sees_what_the_orders_hide():
    """Ten patients decide everything, in every order alike: no error over orders, a large one over
    patients."""
    ours, theirs = np.zeros((100, 5)), np.zeros((100, 5))
    theirs[:10] = 100.0
    lead = gap(ours, theirs)
    assert lead.mean == -10.0
    assert lead.orders_se == 0.0
    assert lead.patients_se == pytest.approx(3.0, abs=0.2)
    assert lead.ahead
    assert gap(theirs, ours).ahead is False
    theirs[:10, 0], ours[10:22] = 0.0, 100.0
    assert gap(ours, theirs).ahead is None


def test_the_bootstrap_leaves_out_who_came_before_the_first_label():
    """One order leaves out the ten patients who decide everything, the other does not."""
    ours, theirs = np.zeros((100, 2)), np.zeros((100, 2))
    theirs[:10] = 100.0
    counted = np.ones((100, 2), np.bool_)
    counted[:10, 0] = False
    lead = gap(ours, theirs, counted=counted)
    assert lead.mean == pytest.approx(-100.0 * 10 / 190)
    assert lead.orders_se == pytest.approx(5.0)
    assert -12 < lead.low < lead.mean < lead.high < 0


def test_errors_are_those_of_the_patient_whatever_the_order():
    orders = [make_order("wdbc", 1, number) for number in range(2)]
    wrong = np.stack([order.patients == 7 for order in orders], axis=1)
    errors = by_patient(wrong, orders)
    assert (errors[7] == 100.0).all()
    assert errors.sum() == 200.0


def test_river_and_ours_were_tried_with_the_same_number_of_settings():
    assert len(TRIED) == len(METHODS)
    assert BEST in TRIED
