"""Files as people have them, through all agents: no dead letter, and an audit that is exact."""

import pytest

from agents.clients.patient_files import CsvPatients, gathered
from audit.end_to_end import recompute
from experiments.confidence.streams import SETS
from settings.loading import source_of, validate
from settings.proposing.from_csv import Wishes, propose
from settings.proposing.proposal import proposed_text
from tests.inline_pipeline import Inline
from tests.messy_files import MESSY, holed, write

PATIENTS = 40


@pytest.mark.parametrize("name", ["biopsy", *MESSY])
def test_nothing_is_refused_and_everything_is_recomputed(tmp_path, name):
    check(write(name, tmp_path), tmp_path)


@pytest.mark.parametrize("name", SETS)
def test_the_same_of_ten_data_sets_with_30_percent_of_their_values_removed(tmp_path, name):
    file = tmp_path / f"{name}.csv"
    holed(file, name, rows=200)
    check(file, tmp_path)


def check(file, tmp_path):
    """Send the first patients of a file through all agents, under the proposed settings."""
    proposal = propose(file, Wishes()).proposal
    settings = validate(source_of(proposed_text(proposal), tmp_path / "ensemble.toml"))
    patients = gathered(CsvPatients(file, settings)).take(range(PATIENTS))
    live = Inline(settings)
    for k in range(PATIENTS):
        live.now = 1_000_000 + 10 * k
        row = {column: _value(values[k]) for column, values in patients.columns.items()}
        diagnosis = live.patient(f"p{k}", row)
        assert diagnosis is not None
        if patients.labels[k]:
            live.label(f"p{k}", patients.labels[k])
    assert live.dead_letters == []
    findings, _ = recompute(live.observed())
    assert findings.clean, findings.list()
    assert any(table.endswith("filling") for table in findings.tables)


def _value(text):
    """Return a cell as a program would send it: a number where it is one."""
    try:
        return float(text)
    except ValueError:
        return text
