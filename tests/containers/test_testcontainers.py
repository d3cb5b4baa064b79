"""The tests that need a broker also pass on Kafka in a container (`HB_TEST_BROKER=docker`)."""

import re
import subprocess
import sys

import pytest

from tests.deploy.files import ROOT

TESTS = ("test_pipeline.py", "test_audit.py", "test_topics.py")


@pytest.mark.timeout(900, func_only=True)
def test_pipeline_audit_and_topics_run_on_a_broker_in_a_container(engine):
    tests = [f"tests/streams/{name}" for name in TESTS]
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        env={**engine.environment, "HB_TEST_BROKER": "docker"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout[-3000:]
    assert re.search(r"\d\d passed", process.stdout), process.stdout[-500:]
