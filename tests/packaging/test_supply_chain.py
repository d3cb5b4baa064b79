"""The bill of materials names everything that is locked; known weaknesses fail the check."""

import json

import pytest

from cli import supply_chain
from cli.supply_chain import bill, main, pins, weaknesses
from streams.broker.jars import lock


def test_the_bill_names_every_locked_package_and_jar_with_its_hash():
    made = bill()
    assert made == bill()
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    parts = {part["purl"]: part for part in made["components"]}
    assert len(parts) == len(made["components"]) == len(pins()) + len(lock().jars)
    assert f"pkg:pypi/aiokafka@{pins()['aiokafka']}" in parts
    for purl, part in parts.items():
        assert part["properties"] if purl.startswith("pkg:pypi/") else part["hashes"]
    json.dumps(made)


KNOWN = {"id": "CVE-1", "fixed_in": ["2.0"]}


def test_known_weaknesses_are_named_and_withdrawn_ones_are_not():
    told = {"a": [KNOWN, {**KNOWN, "id": "CVE-2", "withdrawn": "2026-01-01"}], "b": []}
    found = weaknesses({"a": "1.0", "b": "1"}, lambda name, _: {"vulnerabilities": told[name]})
    assert found == ["a 1.0: CVE-1, mended in 2.0"]


@pytest.mark.parametrize("answer", [OSError(), {}, {"vulnerabilities": [KNOWN]}])
def test_the_check_fails_for_a_weakness_and_says_when_it_could_not_look(
    answer, capsys, monkeypatch
):
    def ask(_name, _version):
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(supply_chain, "pins", lambda: {"a": "1.0"})
    assert main(ask) == (1 if answer == {"vulnerabilities": [KNOWN]} else 0)
    said = capsys.readouterr().err
    assert ("CVE-1" if isinstance(answer, dict) and answer else "were not looked up") in said
