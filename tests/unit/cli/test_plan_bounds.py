import json
import math

import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.plan_bounds import plan
from learners.assessment.referral import furthest
from learners.fusion.late_labels import bound_at_delay
from learners.theory import bounds
from learners.theory.promises import planned_local_bound
from settings.building import local_learner
from settings.errors import InputError
from tests.toys import TOY, toy, toy_file


def test_the_plan_holds_the_theorems_figures(tmp_path):
    planned = plan(toy(tmp_path), T=None, eps=0.1, delta=0.05)
    a, b = planned.learners
    assert planned.T == 100_000
    assert (a.m, a.cubes, a.rules) == (1, 1, 2)
    expected = bounds.local_regret(100_000, d=2, m=1, cubes=1, rules=2, L=0.01, alpha=1.65)
    assert a.regret_bound == pytest.approx(expected)
    assert not a.vacuous
    # T = 100,000, alpha = 1.65, one real feature: 100000^(1/4.3) = 14.5; two categories.
    assert (b.m, b.cubes, b.features) == (15, 30, 2)
    phases = [1000 * 2**j for j in range(7)]
    assert sum(phases) >= 100_000 > sum(phases[:-1])
    learner = local_learner(toy(tmp_path), "b")
    text = TOY.replace("doubling = 1000", "horizon = 1000")
    single = local_learner(toy(tmp_path, text=text), "b")
    assert b.regret_bound == pytest.approx(sum(planned_local_bound(single, t) for t in phases))
    assert planned_local_bound(learner, 100_000) == b.regret_bound
    whole = planned.ensemble.regret_bound_against_best_expert
    assert whole == pytest.approx(2 * math.sqrt(100_000 * math.log(2)))
    # Which oracle is the best is not known, so that the largest bound counts.
    assert planned.ensemble.regret_bound_against_best_local_oracle == pytest.approx(
        max(a.regret_bound, b.regret_bound) + whole
    )
    late = list(planned.ensemble.by_delay.values())
    assert late[0] == whole
    assert late == sorted(late)


def test_with_several_partitions_late_labels_cost_what_they_cost_live(tmp_path):
    one, three = (
        plan(toy(tmp_path, "ensemble.mode=ah", f"topics.partitions={n}"), 10_000, 0.1, 0.05)
        for n in (1, 3)
    )
    assert one.ensemble.by_delay[0] == three.ensemble.by_delay[0]
    late = bound_at_delay(10_000, 2, 100, alone=False)
    assert three.ensemble.by_delay[100] == late > 3 * one.ensemble.by_delay[100]
    shown = " ".join(run(tmp_path, "--set", "topics.partitions=3").output.split())
    assert "with 3 partitions a label is late until each of them has heard of it" in shown
    assert "labels on time" in shown


def test_a_bound_is_called_vacuous_exactly_below_where_it_is_useful(tmp_path):
    a = plan(toy(tmp_path), T=None, eps=0.1, delta=0.05).learners[0]
    learner = local_learner(toy(tmp_path), "a")
    assert planned_local_bound(learner, a.useful_from) < a.useful_from
    assert planned_local_bound(learner, a.useful_from * 0.85) >= a.useful_from * 0.85
    early = plan(toy(tmp_path), T=int(a.useful_from * 0.5), eps=0.1, delta=0.05)
    assert early.learners[0].vacuous


@pytest.mark.parametrize(
    ("override", "word"),
    [
        ("learners.a.exploration=0.01", "exploration is 0.01"),
        ("learners.a.exploration=2.0", "exploration is 2"),
        ("learners.a.backoff=2.0", "back-off"),
        ("defaults.rules.malignant.weight=1.5", "weights"),
        ('learners.a.rules={lr={kind="bayes"}}', "a rule learns"),
    ],
)
def test_it_says_what_the_theorems_do_not_cover(tmp_path, override, word):
    planned = plan(toy(tmp_path, override), T=None, eps=0.1, delta=0.05)
    a = planned.learners[0]
    assert any(word in caveat for caveat in a.caveats)
    assert (a.regret_bound, a.useful_from, a.decisions) == (None, None, None)
    assert planned.ensemble.regret_bound_against_best_local_oracle is None
    assert "a" not in planned.curves
    assert plan(toy(tmp_path), T=None, eps=0.1, delta=0.05).learners[0].caveats == []


def run(tmp_path, *arguments):
    return CliRunner().invoke(
        app, ["plan", "--settings", str(toy_file(tmp_path)), *arguments], catch_exceptions=False
    )


def test_the_command_says_when_a_bound_says_nothing(tmp_path):
    shown = run(tmp_path, "--horizon", "500").output
    assert "vacuous" in shown
    assert "is vacuous before about" in shown


def test_the_command_says_when_a_confidence_cannot_be_reached(tmp_path):
    shown = run(tmp_path, "--eps", "0.0001").output
    assert "cannot be guaranteed: the partition alone" in " ".join(shown.split())


def test_on_what_hb_init_writes_it_says_what_would_have_to_change(tmp_path):
    learned = 'defaults.rules={lr={kind="bayes"}}'
    shown = " ".join(run(tmp_path, "--set", learned, "--set", "ensemble.mode=stack").output.split())
    assert "no bound on regret: this fusion rule does not follow Hedge's weights" in shown
    assert "as hb init --bound proposes" in shown
    assert shown.count("a rule learns") == 1, "what holds for several learners is said once"
    assert "no label has a miss target; with" in shown
    planned = plan(toy(tmp_path, learned, "ensemble.mode=stack"), T=None, eps=0.1, delta=0.05)
    assert planned.curves == {}
    assert planned.ensemble.by_delay == {}
    # A rate near one half is the hardest to know.
    needed = planned.labels_to_know_the_error
    assert list(needed.values()) == sorted(needed.values())
    assert 10_000 < needed[0.5] < 100_000


def test_the_planner_speaks_of_decisions_below_the_confidence(tmp_path):
    shown = " ".join(run(tmp_path, "--eps", "0.3").output.split())
    assert "decisions are ever made below this confidence" in shown
    a = plan(toy(tmp_path), T=None, eps=0.3, delta=0.05).learners[0]
    assert a.decisions == a.trials * a.rules * a.cubes


def test_it_says_how_closely_miss_targets_are_kept(tmp_path):
    shown = " ".join(run(tmp_path, "--set", "ensemble.miss_target=0.05").output.split())
    assert (
        "held at 0.05: on any stream with labels on time it is at most 0.52 points above" in shown
    )
    planned = plan(toy(tmp_path, "ensemble.miss_target=0.05"), T=None, eps=0.1, delta=0.05)
    (below, above), *_ = [(m.below, m.above) for m in planned.miss_rates.values()]
    assert (below, above) == furthest(0.05, 2000)
    late = next(iter(planned.miss_rates.values())).late
    assert late == {d: furthest(0.05, 2000, d)[1] for d in (10, 100, 1000)}
    assert "1 points where 10 of its labels come between a diagnosis and its own, 5.3" in shown


def test_under_the_doubling_trick_each_phase_has_decisions_below_the_confidence(tmp_path):
    whole = plan(toy(tmp_path), T=127_000, eps=0.9, delta=0.05).learners[1]
    single = toy(tmp_path, text=TOY.replace("doubling = 1000", "horizon = 64000"))
    longest = plan(single, T=64_000, eps=0.9, delta=0.05 / 7).learners[1]
    assert whole.trials == longest.trials
    phases = [1000 * 2**j for j in range(7)]
    assert longest.decisions < whole.decisions < sum(phases)


def test_no_confidence_above_that_of_the_index_is_promised(tmp_path):
    assert "allows 90.0 % at most" in " ".join(run(tmp_path, "--horizon", "10").output.split())
    a = plan(toy(tmp_path), T=10, eps=0.3, delta=0.05).learners[0]
    assert (a.trials, a.decisions) == (None, None)


@pytest.mark.parametrize("override", ["ensemble.active=true", "ensemble.miss_target=0.1"])
def test_theorem_3_needs_learners_that_are_always_heard_and_answers_as_drawn(tmp_path, override):
    planned = plan(toy(tmp_path, override), T=None, eps=0.1, delta=0.05)
    assert planned.ensemble.regret_bound_against_best_expert is not None
    assert planned.ensemble.regret_bound_against_best_local_oracle is None


def test_of_a_vote_it_says_that_the_bounds_are_about_a_draw(tmp_path):
    words = "about one expert drawn by its weight"
    assert words in " ".join(run(tmp_path, "--set", "ensemble.mode=wm").output.split())
    assert words not in " ".join(run(tmp_path, "--set", "ensemble.mode=ah").output.split())


def test_json_is_one_object_and_a_plot_is_an_image(tmp_path):
    image = tmp_path / "curves.png"
    result = run(tmp_path, "--json", "--plot", str(image))
    report = json.loads(result.stdout)
    assert [p["learner"] for p in report["figures"]["learners"]] == ["a", "b"]
    assert image.read_bytes().startswith(b"\x89PNG")


def test_a_plot_that_cannot_be_written_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="--plot"):
        run(tmp_path, "--plot", str(tmp_path / "no" / "such.png"))
    with pytest.raises(InputError, match="--plot"):
        run(tmp_path, "--plot", str(tmp_path / "curves.docx"))
