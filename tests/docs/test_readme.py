"""The README: its parts in their order, a command that exists beside every figure, three groups."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from cli.main import app

README = (Path(__file__).parents[2] / "README.md").read_text()
ROWS = [line for line in README.splitlines() if line.startswith("| ")][1:]
PARTS = (
    r"^# Hedged Bandits$",
    r"^`hb` is .*$",
    r"^!\[.*\]\(docs/images/.*\)$",
    r"^## Two commands$",
    r"^\./hb demo .*\n\./hb test .*$",
    r"^## In numbers$",
    r"^\| what \| measured \| repeat it \|$",
    r"^## Limits$",
    r"It is not a medical device",
    r"^## Read on$",
)


def section(heading):
    return README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_the_parts_stand_in_their_order():
    places = {part: re.search(part, README, re.MULTILINE) for part in PARTS}
    assert [part for part, place in places.items() if place is None] == []
    starts = [place.start() for place in places.values()]
    assert starts == sorted(starts)
    assert len(re.findall(r"^## ", README, re.MULTILINE)) == 4


def test_two_sentences_say_what_it_is():
    opening = re.search(r"^`hb` is .*$", README, re.MULTILINE)[0]
    assert len(re.split(r"\. (?=[A-Z])", opening)) == 2


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split(" | ")[0].strip("| ")[:40])
def test_a_command_that_exists_repeats_each_figure(row):
    shown = re.fullmatch(r"\| .+ \| .*\d.* \| `\./hb (.+)` \|", row)
    assert shown, "a row says what, how much, and by which command"
    command, words = get_command(app), shlex.split(shown[1])
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context("hb", words)


def test_there_are_rows():
    assert len(ROWS) >= 5


def test_links_come_in_three_groups():
    groups = re.findall(r"^- \*\*(.+):\*\* (.+)$", section("Read on"), re.MULTILINE)
    assert [name for name, _ in groups] == ["Use it", "Run it", "Understand it"]
    assert all(links.count("](") >= 5 for _, links in groups)


def test_how_to_publish_and_how_to_deploy_are_found_right_after_the_two_commands():
    start = section("Two commands")
    assert "](docs/use.md#your-own-data)" in start
    assert "](docs/deploy.md)" in start
