"""The streams that alarms are tried on, and what raises an alarm."""

import numpy as np
import pytest

from experiments.alarms import LATE, SETTLED, SIGNALS, Case, Raised, Watched, alarms, make
from experiments.confidence.streams import changing, dataset, proposed


def watched(*, disagreed=(), doubt=(), wrong=()):
    """What was watched of a calm stream that becomes different where it is said."""
    steps = 1_500
    calm = np.zeros(steps)
    calm[::20] = 1.0
    later = np.arange(steps) >= 1_000
    return Watched(
        np.where(later & bool(doubt), 0.4, 0.04),
        np.where(later & bool(disagreed), 1.0, calm),
        np.maximum(np.arange(steps) - LATE, 0),
        list(np.where(later & bool(wrong), True, calm == 1.0)),
    )


@pytest.mark.parametrize(
    ("name", "change"),
    [("errors", "wrong"), ("disagreement", "disagreed"), ("doubt", "doubt")],
)
def test_each_alarm_is_raised_by_its_own_change_only(name, change):
    troubled = watched(**{change: (True,)})
    signal = SIGNALS[name]
    assert not any(signal(troubled, t) for t in range(SETTLED, 1_001, 50))
    assert signal(troubled, 1_300)
    others = [other for key, other in SIGNALS.items() if key != name]
    assert not any(other(troubled, 1_300) for other in others)


def test_labels_are_seen_only_once_they_have_come():
    troubled = watched(wrong=(True,))
    assert not SIGNALS["errors"](troubled, 1_000 + LATE)


def test_only_the_first_learners_inputs_get_mixed_up():
    calm, mixed = (make(Case("biopsy", change, 3, 400)) for change in ("none", "inputs"))
    assert (calm.truth == mixed.truth).all()
    first, *others = (
        [feature.name for feature in learner.features]
        for learner in proposed(dataset("biopsy"), 3).learners.values()
    )
    place = {name: j for j, (name, _) in enumerate(calm.data.features)}
    before, after = (stream.data.rows[stream.patients] for stream in (calm, mixed))
    np.testing.assert_array_equal(before[:200], after[:200])
    for names in others:
        columns = [place[name] for name in names]
        np.testing.assert_array_equal(before[:, columns], after[:, columns])
    assert (
        before[200:, [place[name] for name in first]]
        != after[200:][:, [place[name] for name in first]]
    ).any()


def test_labels_change_for_one_group_from_half_way():
    calm, changed = (make(Case("biopsy", change, 3, 400)) for change in ("none", "labels"))
    moved = calm.truth != changed.truth
    assert moved.any()
    assert not moved[:200].any()
    assert (changing(dataset("biopsy"))[calm.patients[moved]] == 1).all()


def test_no_run_is_needed_to_know_what_it_reports(monkeypatch):
    monkeypatch.setattr(
        "experiments.alarms.spread", lambda _work, cases, tick: list(map(_never, cases))
    )
    result = alarms(1, quick=True)
    assert result.figures["errors.false_share"] == 0.0
    assert result.figures["doubt.labels.found_share"] == 0.0


def _never(case):
    return Raised(case, dict.fromkeys(SIGNALS, False), dict.fromkeys(SIGNALS, None))
