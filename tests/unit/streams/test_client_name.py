"""Who is on the machine of a worker knows at once that it has died."""

import subprocess
import sys

import pytest

from streams.kafka.client_name import client_name, has_died

TELL_AND_WAIT = """
from streams.kafka.client_name import client_name
print(client_name(), flush=True)
input()
"""


def test_a_process_has_died_once_it_has_ended():
    child = subprocess.Popen(
        [sys.executable, "-c", TELL_AND_WAIT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    name = child.stdout.readline().strip()
    assert not has_died(name)
    child.kill()
    child.communicate()
    assert has_died(name)


def test_this_process_lives():
    assert not has_died(client_name())


@pytest.mark.parametrize(
    "name", ["", "rdkafka", "hb-0123456789abcdef-1", "hb-elsewhere-1", "hb-x", "faust-0.15.3"]
)
def test_nothing_is_said_of_clients_elsewhere(name):
    assert not has_died(name)


@pytest.mark.parametrize("number", ["", "-1", "x", "1-2", "9" * 40])
def test_what_is_no_process_has_not_died(number):
    ours = client_name().rpartition("-")[0]
    assert not has_died(f"{ours}-{number}")
