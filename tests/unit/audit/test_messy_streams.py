"""Files as people have them, through all agents: no dead letter, and an audit that is exact."""

import pytest

from agents.clients.patient_files import CsvPatients, gathered
from audit.end_to_end import recompute
from settings.loading import source_of, validate
from settings.proposing.from_csv import Wishes, propose
from settings.proposing.proposal import proposed_text
from tests.inline_pipeline import Inline
from tests.messy_files import MESSY, write

PATIENTS = 40


@pytest.mark.parametrize("name", ["biopsy", *MESSY])
def test_nothing_is_refused_and_everything_is_recomputed(tmp_path, name):
    file = write(name, tmp_path)
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
