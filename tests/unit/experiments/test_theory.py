"""The adversaries of `hb experiments theory` span all that is promised."""

import numpy as np
import pytest

from experiments.theory import DELAYS, _crossed, _everywhere, _share_of_bound

BOUNDED = {"ah", "wm", "ch", "ch-vote", "committee"}


def test_every_mode_with_a_bound_meets_every_adversary():
    crossed = _crossed(100, 1, 1)
    shared = {who for who in crossed if "partitions" in who}
    assert crossed.keys() - shared == BOUNDED | {f"{mode}, active" for mode in BOUNDED}
    for who in crossed.keys() - shared:
        met = {(job.learners, job.duel.delay, job.duel.silent) for job in crossed[who]}
        assert met == {(m, d, s) for m in (2, 5) for d in DELAYS for s in (0.0, 0.5)}
    for who in shared:
        assert {job.duel.delay for job in crossed[who]} == set(DELAYS)
        assert {job.partitions for job in crossed[who]} == {3}


@pytest.mark.parametrize("who", ["wm, active", "ah, 3 partitions and 3 context cubes"])
def test_each_stays_below_its_bound(who):
    shares = _share_of_bound(_crossed(100, 2, 1)[who][2])
    assert shares.shape == (2,)
    assert (shares <= 1.0).all()


def test_a_run_above_its_bound_is_counted(monkeypatch):
    monkeypatch.setattr("experiments.theory._crossed", lambda *_: {"ah": [None, None]})
    shares = iter([np.array([0.5, 1.2]), None])
    monkeypatch.setattr("experiments.theory.spread", lambda _work, jobs, **_: list(shares))
    figures = {"bounds_shown": 10.0, "bound_violations": 0.0}
    table = _everywhere(2, 1, 2500, figures, lambda: None)
    assert figures == {"bounds_shown": 12.0, "bound_violations": 1.0}
    assert table.rows == [["ah", 4, 2, pytest.approx(120.0), 1]]
