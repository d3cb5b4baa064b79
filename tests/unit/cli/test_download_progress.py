"""What the first start of the broker shows."""

import pytest
from rich.console import Console

from cli import download_progress as progress


@pytest.fixture
def screen(monkeypatch):
    """Return a function that gives a console, a terminal or not, in place of standard error."""

    def use(terminal):
        console = Console(force_terminal=terminal, width=100, record=True, quiet=False)
        monkeypatch.setattr(progress, "err", console)
        return console

    return use


def fetch(size):
    with progress.shown_progress() as shown:
        shown.say("something first")
        shown.begin(3, size)
        for _ in range(100):
            shown.advance(size // 100)
        shown.end()


def test_plain_lines_where_nobody_watches(screen):
    console = screen(terminal=False)
    fetch(45_000_000)
    assert console.export_text().splitlines() == [
        "hb: something first",
        "hb: fetching the broker: 3 files, 45 MB (once)",
        "hb: 25 % fetched",
        "hb: 50 % fetched",
        "hb: 75 % fetched",
        "hb: 100 % fetched",
    ]


def test_a_bar_on_a_terminal(screen):
    console = screen(terminal=True)
    with progress.shown_progress() as shown:
        shown.begin(3, 1000)
        shown.advance(500)
        shown.bars.refresh()
        assert shown.bars.tasks[0].percentage == 50
        shown.end()
        assert shown.bars.tasks == []
    assert "fetching the broker (3 files, once)" in console.export_text()
