"""The list of access rules beside the example ensemble is what the command prints for it."""

from tests.cli_runs import Hb
from tests.deploy.files import DEPLOY


def test_the_list_is_up_to_date(monkeypatch, capsys):
    hb = Hb(monkeypatch, capsys)
    run = hb("acls", "print", "--commands", "--settings", DEPLOY / "ensemble.toml")
    assert run.code == 0
    assert (DEPLOY / "acls" / "wdbc.txt").read_text() == run.out, (
        "hb acls print --commands --settings deploy/ensemble.toml > deploy/acls/wdbc.txt"
    )
