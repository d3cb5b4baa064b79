"""The curves outlive the worker that drew them, and nothing else does."""

import orjson
import pytest

from agents.monitor.console.curves_file import CurvesFile
from agents.monitor.console.history import MARKS, MOST, History, point
from agents.monitor.scores import Scores
from tests.unit.agents.toy import SETTINGS


@pytest.fixture
def settings(tmp_path):
    return with_state(SETTINGS, tmp_path)


def with_state(settings, folder):
    worker = settings.worker.model_copy(update={"state": folder})
    return settings.model_copy(update={"worker": worker})


def drawn(settings, count=5):
    history = History()
    for n in range(count):
        scores = Scores(labelled=n, rates={"left": {"per": 0.25}, "right": {"per": 0.5}})
        history.add(point(settings, scores, n))
    return history


def test_a_restart_continues_the_curves_and_marks_itself(settings):
    before, after = drawn(settings, 2000), History()
    CurvesFile(settings).save(before)
    CurvesFile(settings).load(after, 3000)
    assert after.points == before.points
    assert [(mark["n"], mark["kind"]) for mark in after.marks] == [(1999, "restart")]
    # It thins out as it would have without the restart.
    for history in (before, after):
        for n in range(2000, 4000):
            history.add(point(settings, Scores(labelled=n), n))
    assert after.points == before.points


def test_changed_settings_are_marked_by_name_and_without_values(settings):
    CurvesFile(settings).save(drawn(settings))
    ensemble = settings.ensemble.model_copy(update={"min_labels": 77})
    after = History()
    CurvesFile(settings.model_copy(update={"ensemble": ensemble})).load(after, 9)
    assert [mark["text"] for mark in after.marks] == ["settings changed: ensemble.min_labels"]


def test_learners_keep_their_curves_when_others_come_and_go(settings):
    CurvesFile(settings).save(drawn(settings))
    right = settings.learners["right"]
    changed = settings.model_copy(update={"learners": {"new": right, "right": right}})
    after = History()
    CurvesFile(changed).load(after, 9)
    assert after.points[-1]["e"] == [None, None, 0.5]
    assert after.points[-1]["x"] == [None, None]


def test_nobody_changes_colour_when_others_come_and_go(settings):
    learner = settings.learners["right"]

    def restarted(*names, experts=()):
        learners = {"learners": dict.fromkeys(names, learner)}
        file = CurvesFile(settings.model_copy(update=learners), experts)
        file.load(History(), 9)
        file.save(drawn(settings))
        return file.colours

    assert restarted("left", "right") == {"left": 0, "right": 1}
    assert restarted("new", "right") == {"left": 0, "right": 1, "new": 2}
    assert restarted("right", "left", experts=["stack"])["stack"] == 3
    assert restarted("left", "right", "new")["left"] == 0


def test_curves_without_colours_go_on_in_those_of_their_order(settings, tmp_path):
    CurvesFile(settings).save(drawn(settings))
    path = tmp_path / "console" / "curves.json"
    content = orjson.loads(path.read_bytes())
    path.write_bytes(orjson.dumps({key: content[key] for key in content if key != "colours"}))
    changed = CurvesFile(settings, ["another"])
    changed.load(History(), 9)
    assert changed.colours == {"left": 0, "right": 1, "another": 2}


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"v": 1}', b'{"v": 2, "name": "toy"}'])
def test_a_file_that_cannot_be_used_is_left_aside(settings, tmp_path, content):
    file = tmp_path / "console" / "curves.json"
    file.parent.mkdir()
    file.write_bytes(content)
    history = History()
    CurvesFile(settings).load(history, 9)
    assert (history.points, history.marks) == ([], [])


def test_a_folder_that_cannot_be_written_stops_nobody(settings, tmp_path, caplog):
    (tmp_path / "console").write_text("in the way")
    CurvesFile(settings).save(drawn(settings))
    assert "cannot save the curves" in caplog.text


def test_it_is_bounded_and_written_only_if_something_moved(settings, tmp_path):
    history = drawn(settings, 3 * MOST)
    for n in range(3 * MARKS):
        history.mark(n, "workers", "1 worker left")
    file = CurvesFile(settings)
    file.save(history)
    path = tmp_path / "console" / "curves.json"
    assert path.stat().st_size < 400 * (MOST + MARKS)
    path.unlink()
    file.save(history)
    assert not path.exists()
    history.mark(1, "workers", "1 worker joined")
    file.save(history)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
