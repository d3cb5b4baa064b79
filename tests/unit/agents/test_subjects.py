"""Whose visit it is: from the file to the diagnosis, and never into what is learned."""

import json

import pytest

from agents.clients.patient_files import file_patients
from agents.clients.produce import Production, Trial
from agents.clients.splitting import PatientError, Splitter
from agents.testing import Pipeline
from tests.inline_pipeline import configured

ROW = {"x": 0.2, "y": 0.4, "z": 0.9}


def test_two_visits_of_one_person_are_two_diagnoses_with_one_subject(tmp_path):
    pipeline = Pipeline(configured(tmp_path))
    visits = [pipeline.patient(name, ROW, subject="s5") for name in ("v1", "v2")]
    assert [(visit.id, visit.subject) for visit in visits] == [("v1", "s5"), ("v2", "s5")]
    assert pipeline.patient("v3", ROW).subject is None


def test_a_subject_changes_no_decision(tmp_path):
    settings = configured(tmp_path)
    named, nameless = Pipeline(settings), Pipeline(settings)
    for k in range(30):
        visit = named.patient(f"v{k}", ROW | {"x": k / 30}, subject=f"s{k % 3}")
        case = nameless.patient(f"v{k}", ROW | {"x": k / 30})
        assert (visit.label, visit.weights, visit.chance) == (case.label, case.weights, case.chance)
        for pipeline in (named, nameless):
            pipeline.label(f"v{k}", "ill" if k % 2 else "well")


def test_a_learner_that_missed_the_patient_leaves_the_subject_known(tmp_path):
    pipeline = Pipeline(configured(tmp_path))
    assert pipeline.patient("v1", ROW, subject="s5", unseen_by=["a"]) is None
    pipeline.wait("10s")
    assert pipeline.diagnosis("v1").subject == "s5"


@pytest.mark.parametrize("name", ["visits.csv", "visits.jsonl"])
async def test_a_file_says_whose_visits_its_rows_are(tmp_path, name):
    settings = configured(tmp_path, "columns.subject=person", "columns.id=visit")
    rows = [{"visit": "v1", "person": "s5", **ROW}, {"visit": "v2", "person": "", **ROW}]
    lines = [json.dumps(row) for row in rows]
    if name.endswith("csv"):
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (tmp_path / name).write_text("\n".join(lines) + "\n")
    source = file_patients(tmp_path / name, settings)
    assert source.grouped
    (piece,) = Production(settings, source, Trial())._pieces()
    split = Splitter(settings, texts=source.texts).many(piece.ids, piece.columns, 5, piece.subjects)
    records = [json.loads(value) for value in split.values["t.instances.a"]]
    assert [(row["id"], row.get("subject")) for row in records] == [("v1", "s5"), ("v2", None)]


def test_a_subject_that_cannot_be_used_is_named_as_such(tmp_path):
    settings = configured(tmp_path, "columns.subject=person")
    with pytest.raises(PatientError, match="subject: expected 1 to 200 characters"):
        Splitter(settings).one("v1", ROW, 5, "a\nb")
    (tmp_path / "a.csv").write_text("person,x,y,z\n" + "s" * 201 + ",1,1,1\n")
    checked = Production(settings, file_patients(tmp_path / "a.csv", settings), Trial()).check()
    assert checked.bad["person"].rows == 1
