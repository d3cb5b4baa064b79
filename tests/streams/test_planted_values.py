"""Values are planted in a run and then searched for, byte by byte, wherever they could be.

`docs/privacy.md` says where they may be found; this test says whether that is true.
"""

import asyncio
import contextlib
import re
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from engine_kit import PATIENCE
from pipeline_kit import (
    arrive,
    await_count,
    await_letters,
    await_state,
    create_topics,
    label,
    learned,
    patients,
    publish,
    settings,
)

from agents.monitor.console.snapshot import token_of
from agents.worker_process import command
from learners.rules.running_variance import SETTLES
from streams.broker.reaper import temporary_broker
from streams.engine.state.store import Store
from streams.kafka.connection import admin_client
from streams.kafka.topic_admin import alter
from streams.kafka.topics import Topics, declared

PRIVACY = Path(__file__).parents[2] / "docs" / "privacy.md"
VALUE = 0.7364519283641
"""A feature that nobody else has."""
CONTEXT = 0.2918273645546
BROKEN = 0.8273645192837
ID = "planted-5519"
SUBJECT = "planted-person-31"
CONTEXTUAL = (
    "ensemble.mode=ch",
    'ensemble.context={features=[{name="dose", low=0, high=1}], cuts=2}',
    "learners.c.reasons=true",
)

COMMANDS = (
    ["status"], ["deadletters", "--show", "5"], ["audit"], ["diagnoses"],
    ["diagnosis", ID], ["forget", ID, "--dry-run"], ["forget", "--subject", SUBJECT, "--dry-run"],
)  # fmt: skip


def forms(value: float) -> list[bytes]:
    """Return how a number may be written: in text, and as a double of either order."""
    return [repr(value).encode(), struct.pack("<d", value), struct.pack(">d", value)]


class Search:
    """Where planted values are."""

    def __init__(self, broker: Path, prefix: str, state: Path) -> None:
        self._broker, self._prefix, self._state = broker, prefix, state

    def segments(self, needles: list[bytes]) -> set[str]:
        """Return the topics whose raw log segments hold one of some byte strings."""
        topics = set()
        for file in filter(Path.is_file, self._broker.rglob("*")):  # also what is to be deleted
            topic = file.parent.name.rpartition("-")[0]
            if topic and any(needle in _bytes(file) for needle in needles):
                topics.add(topic.removeprefix(self._prefix))
        return topics

    def folders(self, needles: list[bytes]) -> set[str]:
        """Return the agents whose state folders hold one of them."""
        return {
            file.relative_to(self._state).parts[0]
            for file in self._state.rglob("*")
            if file.is_file() and any(needle in _bytes(file) for needle in needles)
        }


def _bytes(file: Path) -> bytes:
    with contextlib.suppress(FileNotFoundError):  # RocksDB and the broker clean up
        return file.read_bytes()
    return b""


@contextlib.asynccontextmanager
async def worker(config, folder: Path):
    """Run a worker in a process of its own; give the address of its pages, and its log."""
    overrides = [*CONTEXTUAL, f"topics.prefix={config.topics.prefix}"]
    log = folder / "worker.log"
    with log.open("wb") as file:
        process = subprocess.Popen(  # noqa: ASYNC220 - it starts at once
            command(folder / "ensemble.toml", overrides), stdout=file, stderr=file
        )
        try:
            async with asyncio.timeout(PATIENCE):
                while not (match := re.search(rb"at (http://\S+)", log.read_bytes())):
                    assert process.poll() is None, log.read_text()
                    await asyncio.sleep(0.1)
            yield match[1].decode(), log
        finally:
            process.terminate()
            process.wait(60)


async def pages(address: str, ensemble: str) -> bytes:
    """Return everything that a worker serves, and the console's first frames."""
    read = b""
    async with aiohttp.ClientSession(address) as session:
        paths = ["/", "/metrics", "/healthz", "/readyz", "/viewers"]
        paths += [f"/learner/{name}" for name in "abc"]
        for path in (*paths, f"/diagnosis/{token_of(ensemble, ID)}"):
            async with session.get(path) as answer:
                assert answer.status == 200, path
                read += await answer.read() + str(answer.headers).encode()
        async with session.get("/events") as answer:
            while b"snapshot" not in read or b'"dead"' not in read:
                read += await answer.content.readline()
    return read


def said(folder: Path, *arguments: str, refused: bool = False) -> bytes:
    """Return what a command prints, on both channels."""
    run = subprocess.run(
        [sys.executable, "-c", "from cli.main import main; main()", *arguments,
         "--settings", str(folder / "ensemble.toml"),
         *(part for override in CONTEXTUAL for part in ("--set", override))],
        capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert bool(run.returncode) == refused, run.stdout + run.stderr
    assert run.stdout + run.stderr
    return run.stdout + run.stderr


def commands(folder: Path) -> bytes:
    """Return what the commands print that read the topics, and those that refuse a file."""
    shown = b"".join(said(folder, *words) for words in COMMANDS)
    file = folder / "patients.csv"
    file.write_text(f"patient,truth,x,y,z\n1,benign,{VALUE},{VALUE},{VALUE}oops\n")
    shown += said(folder, "produce", str(file), refused=True)
    return shown + said(folder, "label", f"{ID}={VALUE}", refused=True)


async def plant(config) -> None:
    """Send patients, one of them planted, a planted context, and a broken instance."""
    topics = Topics.of(config)
    ids, features, _ = patients(20)
    ids[7], features["z"][7] = ID, VALUE
    context = {"v": 1, "id": ID, "x": [CONTEXT], "at": 1}
    broken = {"v": 1, "id": "planted-broken", "x": [BROKEN, BROKEN, BROKEN], "at": 1}
    await publish(config.broker.bootstrap, topics.contexts, [(ID, context)])
    await publish(config.broker.bootstrap, topics.instances("b"), [("planted-broken", broken)])
    for name, x in {"a": [0.5, 0.5], "b": [0.5], "c": [0.5, 0.5]}.items():
        visit = {"v": 1, "id": "planted-visit", "x": x, "at": 1, "subject": SUBJECT}
        await publish(config.broker.bootstrap, topics.instances(name), [("planted-visit", visit)])
    await arrive(config, ids, features)
    await await_count(config, topics.diagnoses, 21)
    await await_letters(config, 1)


async def compacted(config, search: Search) -> None:
    """Teach the learner until the broker has compacted away all that it kept of the value."""
    topics = Topics.of(config)
    sooner = {"max.compaction.lag.ms": "1000", "file.delete.delay.ms": "500"}
    places = {topics.changelog("local.c"), topics.models("c")}
    hurried = [
        replace(topic, config={**topic.config, **sooner})
        for topic in declared(config)
        if topic.name in places
    ]
    async with admin_client(config.broker) as admin:
        await alter(admin, hurried)
    async with asyncio.timeout(PATIENCE):
        number = 0
        while {"local.c.changelog", "local.c.models"} & search.segments(forms(VALUE)):
            number += 1
            _, features, truth = patients(SETTLES, number)
            ids = [f"later-{number}-{k}" for k in range(SETTLES)]
            await arrive(config, ids, features)
            await label(config, ids, truth)
            await asyncio.sleep(1)


async def test_values_are_where_they_may_be_and_nowhere_else(prefix, tmp_path):
    with temporary_broker(changes={"log.cleaner.backoff.ms": "500"}) as broker:
        config = settings(tmp_path, broker.address, prefix.strip("."), *CONTEXTUAL)
        await create_topics(config)
        search = Search(broker.data, config.topics.prefix, tmp_path / "state")
        async with worker(config, tmp_path) as (address, log):
            await plant(config)
            assert search.folders(forms(VALUE)) == {"local.c"}, "it waits for its label"
            assert search.segments(forms(VALUE)) == {
                "instances.b", "instances.c", "local.c.changelog"
            }  # fmt: skip
            await label(config, [ID], ["malignant"])
            await await_state(config, lambda state: learned(state, 1))
            shown = await pages(address, config.name)
            for name in (ID, SUBJECT):
                assert name.encode() not in shown + log.read_bytes()
            shown += log.read_bytes() + commands(tmp_path)
            for value in (VALUE, CONTEXT, BROKEN):
                assert not [form for form in forms(value) if form in shown]
            assert search.segments(forms(CONTEXT)) == {"contexts"}
            assert search.segments(forms(BROKEN)) == {"instances.b", "deadletter.b"}
            assert search.folders(forms(CONTEXT) + forms(BROKEN)) == set()
            kept = {"instances.b", "instances.c", "local.c.changelog", "local.c.models"}
            assert search.segments(forms(VALUE)) == kept, "the first patient's value is the mean"
            await compacted(config, search)
            assert search.segments(forms(VALUE)) == {"instances.b", "instances.c"}
            private(tmp_path / "state")
        assert ID.encode() not in log.read_bytes()
    places = ("instances.<ll>", "deadletter.<ll>", "local.<ll>.changelog", "contexts")
    for place in (*places, "local.<ll>.models", "reasons.<ll>"):
        assert f"| `{place}`" in PRIVACY.read_text(), "the table names every place of a value"


def private(folder: Path) -> None:
    """Check that nobody but the owner may read a folder."""
    for place in [folder, *folder.rglob("*")]:
        with contextlib.suppress(FileNotFoundError):
            expected = 0o700 if place.is_dir() else 0o600
            assert place.stat().st_mode & 0o777 == expected, place


def test_the_search_finds_what_is_there(tmp_path):
    (tmp_path / "t.instances.a-0").mkdir()
    (tmp_path / "t.instances.a-0" / "0.log").write_bytes(b"xx" + struct.pack("<d", VALUE))
    search = Search(tmp_path, "t.", tmp_path)
    assert search.segments(forms(VALUE)) == {"instances.a"}
    assert search.segments(forms(CONTEXT)) == set()
    (tmp_path / "t.instances.a-0" / "0.log.deleted").write_bytes(struct.pack("<d", CONTEXT))
    assert search.segments(forms(CONTEXT)) == {"instances.a"}, "a file that is about to go"
    with pytest.raises(AssertionError):
        private(tmp_path)


def test_the_search_finds_every_row_of_a_state_folder(tmp_path):
    """Also once RocksDB has moved the rows from its log to its files."""
    folder, values = tmp_path / "local.a" / "0", [(k * 0.6180339887498949) % 1 for k in range(300)]
    rows = [(b"planted-%d" % k, struct.pack("<qd", 0, value)) for k, value in enumerate(values)]
    with Store(folder, ["features"]) as store:
        store.write({"features": rows}, offsets={}, positions={}, layout={})
        store.scrub()
        assert not any(file.stat().st_size for file in folder.rglob("*.log"))
        files = b"".join(file.read_bytes() for file in folder.rglob("*.sst"))
        assert all(struct.pack("<d", value) in files for value in values)
        search = Search(tmp_path, "", tmp_path)
        assert search.folders(forms(values[150])) == {"local.a"}
