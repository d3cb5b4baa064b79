"""A worker's log: lines with time, level and worker, for people or programs, and their file."""

import logging
import re

import orjson
import pytest

from agents import log_lines
from agents.log_lines import LogFile, LogLine
from agents.worker_log import Chatter, LogStyle, log_to_terminal

LINE = LogLine(1_760_000_000.25, "warning", "local:imaging", "is slow", "streams.engine")


def test_a_line_says_when_how_serious_and_who():
    line = LINE.formatted("text")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d warning local:imaging  is slow", line), (
        line
    )
    held = orjson.loads(LINE.formatted("json"))
    assert held["at"].count(":") >= 2
    assert (held["level"], held["worker"], held["text"]) == ("warning", "local:imaging", "is slow")
    assert LogLine.read(LINE.json(), "other") == LINE


def test_text_that_is_not_a_log_line_is_information():
    for text in ("Traceback (most recent call last):", '{"at": 5}', "[1, 2]", "", '{"a": "b"}'):
        line = LogLine.read(text, "ensemble")
        assert (line.level, line.worker, line.text) == ("info", "ensemble", text)


def test_the_file_gives_back_the_last_lines_even_after_a_new_one_has_begun(tmp_path, monkeypatch):
    monkeypatch.setattr(log_lines, "_MOST", 2000)
    file = LogFile(tmp_path)
    for number in range(60):
        file.write(LogLine(float(number), "info", "ensemble", f"line {number}"))
    assert [line.text for line in file.last(12)] == [f"line {n}" for n in range(48, 60)]
    assert file.last(0) == file.last(0, "ensemble") == file.last(5, "local:imaging") == []
    assert file.last(3, "ensemble") == file.last(3)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 3 * 2000
    assert len(files := [*tmp_path.iterdir()]) == 2
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}, "old and new are private"


@pytest.mark.timeout(30)
def test_a_file_is_followed_into_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr(log_lines.time, "sleep", lambda _: None)
    file = LogFile(tmp_path)
    file.write(LINE)
    followed = file.follow()
    file.write(LogLine(2.0, "info", "ensemble", "new"))
    assert next(followed).text == "new"
    file.path.replace(tmp_path / "old")
    file.write(LogLine(3.0, "info", "ensemble", "newer"))
    assert next(followed).text == "newer"


def test_what_services_say_of_their_start_is_dropped():
    def passes(message, level=logging.INFO):
        return Chatter().filter(logging.LogRecord("streams", level, "f", 1, message, (), None))

    assert not passes("[^--Fetching]: Starting...")
    assert passes("[^--Fetching]: Crashed", logging.ERROR)
    assert passes("task local.a/0 is open")


def test_a_worker_logs_as_it_was_told(capsys):
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in ("faust", "mode", "aiokafka")}
    try:
        for detail, heard in (("quiet", 1), ("normal", 2), ("verbose", 4)):
            root.handlers[:] = []
            log_to_terminal("ensemble", LogStyle("json", detail))
            ours = logging.getLogger("streams.engine")
            ours.warning("slow")
            ours.info("open")
            ours.debug("detail")
            logging.getLogger("mode").info("[^-App]: Starting...")
            lines = [orjson.loads(line) for line in capsys.readouterr().err.splitlines()]
            assert len(lines) == heard, detail
            assert {line["worker"] for line in lines} == {"ensemble"}
    finally:
        root.handlers[:] = before
        root.setLevel(level)
        for name, was in levels.items():
            logging.getLogger(name).setLevel(was)
