"""A replay without a broker: the agents themselves make the record, patient by patient."""

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
    found = replayed([lived(settings, lag=lag)], settings)
    assert found.agreement == 1.0
    assert found.compared == found.patients == N
    assert found.live.labelled == N
    live, again = found.live.report(1), found.replayed.report(1)
    assert live == again
    assert live["rates"]["ensemble"]["per"] < 0.4


def test_other_settings_give_what_they_would_have_given(configured):
    recorded = lived(configured())
    changed = configured("ensemble.mode=ah", "defaults.exploration=0.5")
    found = replayed([recorded], changed)
    direct = replayed([lived(changed)], changed)
    assert found.replayed.report(1) == direct.live.report(1)
    assert found.live.report(1) == replayed([recorded], configured()).live.report(1)


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
    other = 'learners.b.features=[{name="weight", low=0.0, high=1.0}]'
    with pytest.raises(InputError, match="not recorded"):
        replayed([recorded], configured(other))


def test_a_shorter_time_to_live_loses_labels(configured):
    recorded = lived(configured(), lag=20)
    found = replayed(
        [recorded], configured("ensemble.label_ttl=100ms", "ensemble.fusion_timeout=50ms")
    )
    assert found.live.labelled == N
    assert found.replayed.labelled == 0


def test_an_empty_record(configured):
    found = replayed([lived(configured(), n=0)], configured()).report()
    assert found["figures"]["agreement"] is None
    assert found["figures"]["live"]["rates"]["ensemble"]["per"] is None


def test_a_batch_is_cut_at_an_offset():
    batch = Batch("t", 0, 0, 9, 9, [1, 4, 8], [0, 0, 0], [None] * 3, [b"a", b"b", b"c"], {2: ()})
    assert upto(batch, 8).values == [b"a", b"b"]
    assert upto(batch, 8).next == 8
    assert upto(batch, 9) is batch
