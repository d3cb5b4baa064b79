"""Models are the same bits whatever the processor would make of them by itself."""

import os
import subprocess
import sys

import pytest

from learners.arrays.processor import CHOICES, has_fma, pin
from tests.deploy.files import ROOT

LEARN = """
from learners.arrays.processor import pin
pin()
from hashlib import sha256
import sys
from experiments.data import wdbc
from learners.rules.registry import PRESETS
data, digest = wdbc(), sha256()
rule = PRESETS[sys.argv[1]]("rule", data.space(), 2)
for i in range(0, 200, 8):
    digest.update(rule.log_odds(data.rows[i : i + 8]).tobytes())
    rule.learn(data.rows[i : i + 8], data.truth[i : i + 8])
for value in rule.state().values():
    digest.update(value.tobytes())
print(digest.hexdigest()[:16])
"""


@pytest.mark.skipif(not has_fma(), reason="the processor is not an x86-64 with AVX2 and FMA")
@pytest.mark.parametrize(
    ("preset", "digest"), [("kdi", "277c955d067f33e2"), ("joint", "62911197bb9e5c45")]
)
def test_a_model_is_the_same_bits_on_every_x86_64_processor(preset, digest):
    environment = {key: text for key, text in os.environ.items() if key not in CHOICES}
    run = subprocess.run(
        [sys.executable, "-c", LEARN, preset],
        env=environment, cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert run.stdout.strip() == digest


def test_what_the_environment_says_is_left_alone(monkeypatch):
    for name in CHOICES:
        monkeypatch.setenv(name, "another")
    pin()
    assert {os.environ[name] for name in CHOICES} == {"another"}
