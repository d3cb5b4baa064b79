import os

import pytest

from tests.cli_runs import Hb


@pytest.fixture
def hb(monkeypatch, capsys, tmp_path):
    """`hb`, in an empty folder, with no settings from the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name in os.environ:
        if name == "HB_SETTINGS" or name.startswith("HB_SET__"):
            monkeypatch.delenv(name)
    return Hb(monkeypatch, capsys)
