"""The cubes of all phases in one table."""

import numpy as np
import pytest

from agents.pooling import PhaseIds
from learners.arrays.tables import DENSE_LIMIT
from learners.errors import LearnerError
from learners.local.partition import MAX_CELLS
from settings.building import local_learner
from tests.inline_pipeline import configured

HORIZONS = {"known": "learners.b.horizon=2000", "unknown": "learners.b.doubling=100"}


@pytest.mark.parametrize("horizon", HORIZONS)
def test_ids_come_back_phase_by_phase(tmp_path, horizon):
    learner = local_learner(configured(tmp_path, HORIZONS[horizon]), "b")
    ids, phases = PhaseIds(learner), (1,) if horizon == "known" else (1, 2, 5)
    cubes = np.array([0, 1, MAX_CELLS])
    joined = [ids.join(phase, cubes) for phase in phases]
    parts = PhaseIds(learner).split(np.concatenate(joined))
    assert {part.phase: part.cubes.tolist() for part in parts} == dict.fromkeys(
        phases, cubes.tolist()
    )


@pytest.mark.parametrize("cube", [2**45, MAX_CELLS // 2, MAX_CELLS - 2**45])
@pytest.mark.parametrize("horizon", HORIZONS)
def test_an_id_that_no_phase_can_have_is_refused(tmp_path, horizon, cube):
    """Stored ids may be anybody's; a phase for each size up to there would fill the memory."""
    learner = local_learner(configured(tmp_path, HORIZONS[horizon]), "b")
    with pytest.raises(LearnerError, match="cubes that this learner does not have"):
        PhaseIds(learner).split(np.array([0, cube]))
    assert sum(table.nbytes for table in learner.iup.tables().values()) < 1000 * DENSE_LIMIT
