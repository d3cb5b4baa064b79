"""What a worker hears of its own tasks is what their changelogs say."""

import numpy as np
import orjson
from aiokafka import TopicPartition

from agents.agent_metrics import DIAGNOSED
from agents.monitor.local_state import LocalState
from agents.monitor.overview import state_view, sums
from streams.engine.changelogs.changelog import META_KEY
from streams.engine.measurements import FEW, Notes
from streams.engine.observer import At, Committed, Opened
from streams.kafka.batch import Batch
from streams.kafka.topics import ENSEMBLE, Topics
from tests.unit.agents.toy import SETTINGS

NAMES = Topics.of(SETTINGS)
PRIVATE, SHARED = NAMES.changelog(ENSEMBLE), NAMES.shared(ENSEMBLE)


def key(cell):
    return int(cell).to_bytes(8, "big", signed=True)


def row(*numbers):
    return np.array(numbers, np.int64).tobytes()


def opened(partition=0, **rows):
    stored = {name: (lambda pairs=pairs: iter(pairs)) for name, pairs in rows.items()}
    return Opened(ENSEMBLE, partition, 0.1, 3, At({"in": 5}, {PRIVATE: 7, SHARED: 9}), stored)


def committed(changes, at, partition=0, notes=None):
    notes = notes or Notes()
    return Committed(ENSEMBLE, partition, 1, 1, changes, {}, 0.1, 0.1, notes, at)


def own():
    return LocalState(NAMES, state_view(NAMES))


def rows_of(view):
    return {
        table: {number: {c: r.tolist() for c, r in rows.items()} for number, rows in parts}
        for table in ("scores", "totals", "regret")
        if (parts := list(view.parts(SHARED, table)))
    }


def test_it_starts_from_what_is_stored_and_goes_on_with_each_commit():
    state = own()
    state.opened(opened(scores=[(key(0), row(1, 2)), (key(1), row(3, 4))], pending=[(b"x", b"y")]))
    state.committed(committed({"scores": [(key(1), row(3, 5))], "head": [(b"h", b"v")]}, At()))
    state.committed(committed({"totals": [(key(0), row(8))]}, At({"in": 6}, {SHARED: 12})))
    assert rows_of(state.view) == {
        "scores": {0: {0: [1, 2], 1: [3, 5]}},
        "totals": {0: {0: [8]}},
    }
    assert state.view.positions == {(PRIVATE, 0): {"in": 6}}
    assert state.offsets[TopicPartition(SHARED, 0)] == 12


def test_a_task_that_starts_from_nothing_has_nothing_to_show():
    state, view = own(), state_view(NAMES)
    state.opened(opened(scores=[], window=[], totals=[]))
    state.adopted(view)
    assert rows_of(view) == {}
    assert sums(SETTINGS, view).recent is None


def test_who_looks_gets_it_beside_what_was_read_of_others():
    state, view = own(), state_view(NAMES)
    meta = orjson.dumps({"positions": {"in": 2}})
    for partition in (0, 1):
        view.take_batch(
            Batch(SHARED, partition, 0, 1, 1, [0], [0], [b"scores/" + key(0)], [row(1)])
        )
        view.take_batch(Batch(PRIVATE, partition, 0, 1, 1, [0], [0], [META_KEY], [meta]))
    state.opened(opened(0, scores=[(key(1), row(70))]))
    state.adopted(view)
    assert rows_of(view) == {"scores": {0: {1: [70]}, 1: {0: [1]}}}, "nothing old remains"
    assert view.positions == {(PRIVATE, 0): {"in": 5}, (PRIVATE, 1): {"in": 2}}
    assert view.sums(SHARED, "scores").keys() == {0, 1}


def test_a_task_that_is_closed_is_left_to_the_changelogs():
    state, view = own(), state_view(NAMES)
    assert not state.holds(ENSEMBLE, 1)
    state.closed(ENSEMBLE, 0)  # it may be closed before it was ever open
    state.opened(opened(0, scores=[(key(0), row(1))]))
    assert state.holds(ENSEMBLE, 1)
    assert not state.holds(ENSEMBLE, 2)
    places = state.adopted(view)
    assert dict(places) == {TopicPartition(PRIVATE, 0): 7, TopicPartition(SHARED, 0): 9}
    state.closed(ENSEMBLE, 0)
    assert not state.adopted(view)
    # Others go on with it; this worker reads that, and later holds it once more.
    view.take_batch(Batch(SHARED, 0, 9, 10, 10, [9], [0], [b"scores/" + key(0)], [row(2)]))
    assert rows_of(view) == {"scores": {0: {0: [2]}}}
    state.opened(opened(0, scores=[(key(0), row(3))]))
    assert rows_of(view) == {"scores": {0: {0: [2]}}}, "until the next look"
    state.adopted(view)
    assert rows_of(view) == {"scores": {0: {0: [3]}}}


def test_the_latest_diagnoses_are_kept():
    """However few a commit brings: a slow stream shows as many as a fast one."""
    state, notes = own(), Notes()
    diagnoses = [b"%d" % n for n in range(20)]
    notes.keep(DIAGNOSED, diagnoses[:3])
    notes.keep(DIAGNOSED, diagnoses[3:17])
    state.committed(committed({}, At(), 1, notes))
    assert list(state.diagnoses[1]) == diagnoses[17 - FEW : 17]
    for diagnosis in diagnoses[17:]:
        notes = Notes()
        notes.keep(DIAGNOSED, [diagnosis])
        state.committed(committed({}, At(), 1, notes))
    state.committed(committed({}, At(), 1))
    assert list(state.diagnoses[1]) == diagnoses[-FEW:]
    assert state.diagnoses.keys() == {1}
