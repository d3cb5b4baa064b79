"""Ids that mean nothing without the key, and clients that find their answers all the same."""

import pytest

from agents.clients.pseudonyms import Pseudonyms
from agents.clients.splitting import Splitter
from tests.unit.agents.toy import SETTINGS


def with_key(monkeypatch, key="k" * 32):
    monkeypatch.setenv("ID_KEY", key)
    document = SETTINGS.model_dump(mode="json", exclude_unset=True)
    return SETTINGS.model_validate({**document, "privacy": {"id_key": {"env": "ID_KEY"}}})


def test_without_a_key_everything_stays_as_it_is():
    none = Pseudonyms(SETTINGS)
    assert (bool(none), none.id("a17"), none.subject("s"), none.subject(None)) == (
        False, "a17", "s", None,
    )  # fmt: skip


def test_the_same_id_gives_the_same_pseudonym_and_only_with_the_same_key(monkeypatch):
    ours, theirs = (Pseudonyms(with_key(monkeypatch, key)) for key in ("one", "other"))
    assert ours.id("a17") == ours.id("a17") != ours.id("a18")
    assert ours.id("a17") != theirs.id("a17")
    assert ours.id("a17") != ours.subject("a17")
    assert len(ours.id("a17")) == 32


@pytest.mark.parametrize("name", ["", "x" * 201, "a\n17"])
def test_something_that_is_not_an_id_is_still_refused(monkeypatch, name):
    settings = with_key(monkeypatch)
    ids = Pseudonyms(settings).ids([name])
    columns = {column: [None] for column in Splitter(settings).columns}
    assert [fault.column for fault in Splitter(settings).faults(ids, columns)] == [""]
