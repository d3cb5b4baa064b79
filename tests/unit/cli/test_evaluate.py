"""`hb evaluate`: messy files without a manual step, and figures that mean what they say."""

import shlex
from itertools import pairwise

import numpy as np
import pytest

from audit.evaluation.cases import Cases
from audit.evaluation.evaluate import Evaluation, Tried, candidates
from audit.evaluation.outcome import Outcome, labels_until_useful
from audit.evaluation.passes import logistic_pass, majority_pass
from learners.local.features import unit_cube
from settings.loading import load_settings
from settings.proposing.from_csv import Wishes, propose
from tests.messy_files import MESSY, write

FIGURES = {
    "PER", "FPR", "FNR", "logistic_PER", "majority_PER", "rows", "missing_values", "repeated_ids",
    "labels_until_useful", "logistic_FPR", "logistic_FNR", "logistic_FNR_se",
    "FNR_lead_over_logistic",
}  # fmt: skip


def silent(_name, _done, _total):
    pass


@pytest.mark.parametrize("name", [*MESSY, "biopsy"])
def test_messy_files_need_no_manual_step(hb, tmp_path, name):
    file = write(name, tmp_path, delimiter=";" if name == "wine" else ",")
    report = hb("evaluate", file, "--json", "--limit", 40, "--label-delay", 3).json
    figures = report["figures"]
    assert figures.keys() >= FIGURES
    assert figures["refused"] == 0
    assert figures["used"] == 40
    assert 0 <= figures["PER"] <= 1
    assert report["command"].startswith(f"hb init {file} --label class --positive ")


def test_biopsy_as_it_is_shipped(hb, tmp_path):
    page = tmp_path / "page.html"
    run = hb("evaluate", write("biopsy", tmp_path), "--json", "--html", page)
    report, figures = run.json, run.json["figures"]
    assert (figures["rows"], figures["missing_values"], figures["repeated_ids"]) == (699, 16, 54)
    assert report["guessed"] == {"label": "class", "positive": "malignant"}
    assert figures["PER"] < 0.12 < figures["majority_PER"]
    assert figures["lead_over_logistic"] >= -figures["lead_se"]
    assert figures["FNR_lead_over_logistic"] >= -figures["FNR_lead_se"]
    assert figures["labels_until_useful"] < 100
    behind = figures["logistic_FNR"] - figures["FNR"]
    assert figures["FNR_lead_over_logistic"] == pytest.approx(behind)
    assert 0 < figures["FNR_lead_se"] < figures["FNR_se"] + figures["logistic_FNR_se"]
    text = page.read_text()
    assert "Learning curves" in text
    assert text.count("<polyline") == 6
    assert 'class="' not in text.split("</style>")[0]


def test_the_best_settings_can_be_written_by_the_command_it_ends_with(hb, tmp_path):
    run = hb("evaluate", write("iris", tmp_path), "--limit", 60)
    command = run.out.splitlines()[-1].split()
    assert command[:2] == ["hb", "init"]
    assert hb(*command[1:]).code == 0
    assert hb("settings", "check").code == 0


NAMED = ("--learner", "imaging=V1,V2,V3", "--learner", "history=V9,V4")


@pytest.mark.parametrize("options", [NAMED, ("--learners", "2"), ()], ids=["named", "two", "none"])
@pytest.mark.parametrize("best", ["proposed", "regret bound", "one learner", "paper"])
def test_the_command_writes_the_very_learners_that_were_judged(hb, tmp_path, options, best):
    csv = propose(write("biopsy", tmp_path), _wishes(options))
    (candidate,) = (each for each in candidates(csv) if each.name == best)
    tried = Tried(best, candidate.options, Outcome(np.array([1]), np.array([1]), 2, 1), None)
    found = Evaluation(tmp_path / "biopsy.csv", csv, [tried], tried, tried, 1, 0, 0)
    run = hb(*shlex.split(found.command)[1:])
    assert run.code == 0, run.err
    written = load_settings(tmp_path / "ensemble.toml")
    judged = candidate.settings()
    assert written.columns == judged.columns
    assert written.ensemble == judged.ensemble
    assert {name: learner.features for name, learner in written.learners.items()} == {
        name: learner.features for name, learner in judged.learners.items()
    }


def _wishes(options):
    named = [value for option, value in pairwise(options) if option == "--learner"]
    return Wishes(id_column="ID", learners=None if named or not options else 2, named=named)


def test_labels_that_come_later_are_known_later(tmp_path):
    """No pass may peek: what is said of a patient does not depend on labels that are not due."""
    rng = np.random.default_rng(3)
    rows, truth = rng.random((60, 2)), rng.integers(0, 2, 60)
    flipped = truth.copy()
    flipped[30:] = 1 - flipped[30:]
    for delay in (0, 7):
        answers = []
        for labels in (truth, flipped):
            cases = Cases({"a": unit_cube(2)}, {"a": rows}, labels, 0)
            answers.append((majority_pass(cases, 2, delay), logistic_pass(cases, 2, delay, silent)))
        for first, second in zip(*answers, strict=True):
            assert (first[: 31 + delay] == second[: 31 + delay]).all()
        assert (answers[0][1] != answers[1][1]).any()


def test_useful_means_ahead_of_the_majority_beyond_chance_and_for_good():
    truth = np.array([0, 1] * 50)
    majority = Outcome(np.zeros(100, np.int64), truth, 2, 1)
    assert labels_until_useful(majority, majority) is None
    perfect = Outcome(truth.copy(), truth, 2, 1)
    assert labels_until_useful(perfect, majority) == 6  # three right where the other was wrong
    late = truth.copy()
    late[:40] = 0
    assert labels_until_useful(Outcome(late, truth, 2, 1), majority) == 46


def test_a_column_that_gives_the_label_away_is_pointed_out(hb, tmp_path):
    rng = np.random.default_rng(0)
    lines = ["age,discharge,ward,class"]
    for _ in range(80):
        ill = rng.random() < 0.4
        lines.append(f"{rng.integers(20, 90)},{'late' if ill else 'soon'},{rng.integers(3)},{ill}")
    file = tmp_path / "leak.csv"
    file.write_text("\n".join(lines) + "\n")
    warnings = hb("evaluate", file, "--json", "--limit", 20).json["warnings"]
    assert len(warnings) == 1
    assert "'discharge' alone tells the label" in warnings[0]


def test_nobody_is_on_both_sides(hb, tmp_path):
    """Of people who come again only the first visit is scored; the column is not a feature."""
    rng = np.random.default_rng(4)
    people = [(k % 40, rng.random(), "ill" if k % 40 % 2 else "well") for k in range(120)]
    lines = ["person,x,class", *(f"{person},{x:.3f},{label}" for person, x, label in people)]
    file = tmp_path / "visits.csv"
    file.write_text("\n".join(lines) + "\n")
    run = hb("evaluate", file, "--label", "class", "--subject", "person", "--json")
    assert run.code == 0, run.err
    figures = run.json["figures"]
    assert (figures["used"], figures["later_visits"]) == (120, 80)
    assert figures["PER"] > 0.2, "x tells nothing, and nobody is known again"
    assert "--subject person" in run.json["command"]
    assert "later visits" in hb("evaluate", file, "--label", "class", "--subject", "person").out


def test_ids_that_come_again_are_people(hb, tmp_path):
    write("biopsy", tmp_path)
    file = tmp_path / "biopsy.csv"
    figures = hb("evaluate", file, "--limit", "100", "--json").json["figures"]
    ids = [line.split(",")[0] for line in file.read_text().splitlines()[1:101]]
    assert figures["later_visits"] == len(ids) - len(set(ids))
