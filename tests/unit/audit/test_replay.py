"""A replay without a broker: the agents themselves make the record, patient by patient."""

from dataclasses import replace

import numpy as np
import pytest

from audit.recording.reader import upto
from audit.replay.recorded_stream import recorded_stream
from audit.replay.replay import replayed
from settings.errors import InputError
from streams.kafka.batch import Batch
from tests import inline_pipeline

N = 100


@pytest.fixture
def configured(tmp_path):
    return lambda *overrides: inline_pipeline.configured(tmp_path, *overrides)


def lived(settings, n=N, lag=0):
    return inline_pipeline.lived(settings, n, lag).logs()


@pytest.mark.parametrize("mode", ["wm", "ah", "stack", "stack, joint", "committee"])
@pytest.mark.parametrize("lag", [0, 7])
def test_the_same_settings_give_the_same_diagnoses(configured, mode, lag):
    mode, _, joint = mode.partition(", ")
    settings = configured(f"ensemble.mode={mode}", *(inline_pipeline.JOINT if joint else ()))
    replay = replayed([lived(settings, lag=lag)], settings)
    assert replay.agreement == 1.0
    assert replay.differences.compared == replay.patients == N
    assert replay.live.labelled == N
    live, again = replay.live.report(1), replay.replayed.report(1)
    assert live == again
    assert live["rates"]["ensemble"]["per"] < 0.4


class Unhurried(inline_pipeline.Inline):
    """Agents take what lies on their topics in batches of any size, in any order, at any time."""

    def __init__(self, settings, seed):
        super().__init__(settings)
        self.rng = np.random.default_rng(seed)
        self.taken = dict.fromkeys(self._readers, 0)

    def publish(self, topic, key, value, *, at=None, headers=()):
        readers, self._readers = self._readers, {}
        super().publish(topic, key, value, at=at, headers=headers)
        self._readers = readers

    def step(self, topic):
        waiting = self.published[topic][self.taken[topic] :]
        some = waiting[: self.rng.integers(1, 6)]
        self.taken[topic] += len(some)
        columns = [[single[0] for single in part] for part in zip(*map(_single, some), strict=True)]
        batch = replace(some[0], **dict(zip(_COLUMNS, columns, strict=True)), next=some[-1].next)
        self._publish_all(self._readers[topic].process(batch, self.topics.deadletter))

    def some_steps(self, most):
        for _ in range(self.rng.integers(0, most)):
            behind = [t for t in self.taken if self.taken[t] < len(self.published[t])]
            if behind:
                self.step(behind[self.rng.integers(len(behind))])


_COLUMNS = ("offsets", "timestamps", "keys", "values")


def _single(batch):
    return [getattr(batch, column) for column in _COLUMNS]


def unhurried(settings, seed, n=N):
    """Live through a stream whose agents lag behind each other; some labels are corrected."""
    live = Unhurried(settings, seed)
    rows = live.rng.random((n, 3))
    for k in range(n):
        live.now += 10
        absent = ["a"] if k % 17 == 5 else []
        live.patient(f"p{k}", dict(zip("xyz", rows[k].tolist(), strict=True)), unseen_by=absent)
        old = max(0, k - int(live.rng.integers(0, 20)))
        for name, label in ((f"p{k}", k % 3 == 0), (f"p{old}", k % 5 == 0)):
            wrong = rows[int(name[1:])][[0, 2]].sum() <= 1.1
            if label:
                live.label(name, "well" if wrong else "ill")
        if k % 40 == 39:
            live.label(f"p{k - 30}", None if k % 80 == 39 else "ill", amends=True)
        live.some_steps(12)
        if k % 17 == 9:
            live.wait("6s")
        if k % 37 == 36:
            live.restart()
    live.wait("6s")
    while any(live.taken[topic] < len(live.published[topic]) for topic in live.taken):
        live.some_steps(50)
    return live.logs()


@pytest.mark.parametrize("mode", ["wm", "ah", "stack, joint", "committee"])
def test_it_follows_the_record_whatever_was_late(configured, mode):
    mode, _, joint = mode.partition(", ")
    settings = configured(f"ensemble.mode={mode}", *(inline_pipeline.JOINT if joint else ()))
    recorded = unhurried(settings, 4)
    assert not recorded.diagnoses.columns["complete"].all()
    assert np.concatenate([log.columns["amends"] for log in recorded.feedback.values()]).any()
    replay = replayed([recorded], settings)
    figures = replay.report()["figures"]
    assert figures["followed"]
    assert (figures["differing"], figures["only_live"], figures["causes"]) == (0, 0, {})
    assert replay.live.confusion["ensemble"].sum() > N / 4
    for name, counts in replay.live.confusion.items():
        assert (counts == replay.replayed.confusion[name]).all()


def test_without_the_record_of_what_was_learned_each_difference_has_its_cause(configured):
    settings = configured("ensemble.mode=stack", *inline_pipeline.JOINT)
    recorded = unhurried(settings, 1, n=3 * N)
    recorded.predictions.columns["learned"][:] = -1
    replay = replayed([recorded], settings)
    figures = replay.report()["figures"]
    assert not figures["followed"]
    assert figures["differing"] == sum(figures["causes"].values()) > 0
    assert set(figures["causes"]) <= {"heard", "labels", "waiting", "corrected"}
    assert "labels" in figures["causes"]
    assert any("other labels had been learned by then" in line for line in replay.caveats)


def test_of_several_partitions_it_says_that_they_heard_of_each_other_later(configured):
    settings = configured()
    replay = replayed([unhurried(settings, 1), unhurried(settings, 2)], settings)
    figures = replay.report()["figures"]
    assert not figures["followed"]
    assert figures["causes"].get("partitions", 0) > 0
    assert set(figures["causes"]) <= {"heard", "partitions"}


def test_other_settings_give_what_they_would_have_given(configured):
    recorded = lived(configured())
    changed = configured("ensemble.mode=ah", "defaults.exploration=0.5")
    replay = replayed([recorded], changed)
    direct = replayed([lived(changed)], changed)
    assert replay.replayed.report(1) == direct.live.report(1)
    assert replay.live.report(1) == replayed([recorded], configured()).live.report(1)


def test_features_can_be_taken_from_other_learners(configured):
    recorded = lived(configured())
    wider = 'learners.b.features=[{name="y", low=0.0, high=1.0}, {name="z", low=0.0, high=1.0}]'
    settings = configured(wider)
    tape = recorded_stream([recorded], settings)
    rows = tape.arrivals["b"].rows
    first = recorded.instances["a"].columns["row"]
    assert rows[:, 0].tolist() == first[:, 1].tolist()
    assert replayed([recorded], settings).patients == N


def test_what_was_not_recorded_cannot_be_replayed(configured):
    recorded = lived(configured(), n=3)
    unrecorded = 'learners.b.features=[{name="weight", low=0.0, high=1.0}]'
    with pytest.raises(InputError, match="not recorded"):
        replayed([recorded], configured(unrecorded))


def test_a_shorter_time_to_live_loses_labels(configured):
    recorded = lived(configured(), lag=20)
    replay = replayed(
        [recorded], configured("ensemble.label_ttl=100ms", "ensemble.fusion_timeout=50ms")
    )
    assert replay.live.labelled == N
    assert replay.replayed.labelled == 0


def test_an_empty_record(configured):
    report = replayed([lived(configured(), n=0)], configured()).report()
    assert report["figures"]["agreement"] is None
    assert report["figures"]["live"]["rates"]["ensemble"]["per"] is None


def test_a_batch_is_cut_at_an_offset():
    batch = Batch("t", 0, 0, 9, 9, [1, 4, 8], [0, 0, 0], [None] * 3, [b"a", b"b", b"c"], {2: ()})
    assert upto(batch, 8).values == [b"a", b"b"]
    assert upto(batch, 8).next == 8
    assert upto(batch, 9) is batch


def test_rules_that_do_not_learn_see_the_same_in_place_of_missing_values(configured):
    rule = '{kind="threshold", feature="%s", above="ill", below="well", value=0.5}'
    settings = configured(
        f"learners.a.rules={{t={rule % 'x'}}}", f"learners.b.rules={{t={rule % 'z'}}}"
    )
    replay = replayed([inline_pipeline.with_gaps(settings, N).logs()], settings)
    assert replay.agreement == 1.0
