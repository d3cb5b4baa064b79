"""Reads a run of whole ensembles, recorded or live: topics, state folders, and what `hb` says.

Nothing here leans on the product's modules: commands are started as users start them, topics are
read with the plain client, state folders with RocksDB itself. So what was read before a change of
the product and what is read after it can be held against each other bit by bit.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families
from rocksdict import AccessType, Options, Rdict

HERE = Path(__file__).parent
ARCHIVE = HERE / "run.tar.xz"
EXPECTED = "expected.json"
ENSEMBLES = ("first", "second")
MARK = b"\x00generation/"
"""Begins the keys of rows that tell whether writes are missing; they belong to no table."""
META = "default"
"""The column family that says what a folder stands for, beside the tables."""

# Models are compared bit by bit, and processors round differently: exponentials by their vector
# units, sums of products by the kernel that BLAS chooses. With these every processor of the last
# ten years takes the same path.
ARITHMETIC = {
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}
_PROBE = """
import hashlib, math
import numpy as np
x = np.random.default_rng(1).normal(size=(40, 40))
y = x[0]
results = [np.exp(x), np.log(x * x), np.sin(x), np.cos(x), np.sqrt(x * x), x @ y, x @ x.T, x.T @ y,
           np.linalg.inv(x), x.sum(axis=0), x.mean(axis=1), np.tanh(x), np.log1p(x * x)]
scalars = [f(v) for v in y.tolist() for f in (math.exp, math.sin, math.tanh)]
data = b"".join(r.tobytes() for r in results) + np.array(scalars).tobytes()
print(hashlib.sha256(data).hexdigest())
"""
# What a worker serves of the state of the whole ensemble (docs/metrics.md).
STATE_METRICS = (
    "hb_prediction_error_rate",
    "hb_false_positive_rate",
    "hb_false_negative_rate",
    "hb_prediction_error_rate_bound",
    "hb_confusion",
    "hb_accuracy",
    "hb_accuracy_low",
    "hb_accuracy_high",
    "hb_regret",
    "hb_regret_bound",
    "hb_weight",
    "hb_exploration_ratio",
    "hb_cubes",
    "hb_labelled",
    "hb_labels",
    "hb_expired",
    "hb_pending",
    "hb_pending_limit",
    "hb_parked_labels",
    "hb_predicted",
    "hb_disagreements",
    "hb_thin_predictions",
    "hb_decisions",
    "hb_fusions",
)
_HB = [sys.executable, "-c", "from cli.main import main; main()"]
# Several commands in one process: starting it takes longer than most of them.
_SEVERAL = """
import contextlib, io, json, sys
from cli.main import main
results = []
for arguments in json.load(sys.stdin):
    sys.argv = ["hb", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    results.append((code, out.getvalue()))
print(json.dumps(results))
"""


def environment(address: str) -> dict[str, str]:
    """Return what commands run under: this broker, and the same arithmetic everywhere."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HB_SET")}
    return {**inherited, **ARITHMETIC, "HB_SET__BROKER__BOOTSTRAP": address, "COLUMNS": "200"}


def arithmetic() -> str:
    """Return a digest of how this machine computes, under `ARITHMETIC`."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROBE],
        env={**os.environ, **ARITHMETIC},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.strip()


def renew(folder: Path) -> None:
    """Write in the recorded settings what has taken the place of keys that are no more."""
    file = folder / "first.toml"
    text = file.read_text()
    file.write_text(text.replace("fnr_control = true", "miss_target = { malignant = 0.05 }"))


class Commands:
    """Runs `hb` for one ensemble of a folder."""

    def __init__(self, folder: Path, address: str, ensemble: str) -> None:
        self.folder, self.address, self.ensemble = folder, address, ensemble

    def __call__(self, *arguments: object) -> None:
        """Run `hb ARGUMENTS --settings …`."""
        run = subprocess.run(
            self._command(*arguments),
            env=environment(self.address),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, f"{arguments}: {run.stdout}{run.stderr}"

    def json(self, *commands: tuple[object, ...]) -> list[Any]:
        """Return the JSON objects that commands print, which may find something (exit code 1)."""
        settings = ("--json", "--settings", self.folder / f"{self.ensemble}.toml")
        run = subprocess.run(
            [sys.executable, "-c", _SEVERAL],
            input=json.dumps(
                [[str(part) for part in (*command, *settings)] for command in commands]
            ),
            env=environment(self.address),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        results = json.loads(run.stdout)
        assert all(code in (0, 1) for code, _ in results), run.stderr
        return [json.loads(text) for _, text in results]

    @contextlib.contextmanager
    def worker(self, *arguments: object) -> Iterator["Worker"]:
        """Run a worker with all roles until the block ends."""
        process = subprocess.Popen(
            self._command("worker", *arguments),
            env=environment(self.address),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        worker = Worker(process)
        try:
            worker.await_page()
            yield worker
        finally:
            process.terminate()
            process.wait(60)
            worker.drained.join()
            process.stdout.close()
            sys.stderr.write("".join(worker.lines))

    def _command(self, *arguments: object) -> list[str]:
        file = self.folder / f"{self.ensemble}.toml"
        return [*_HB, *map(str, arguments), "--settings", str(file)]


class Worker:
    """A worker's process, what it wrote, and where its page is."""

    def __init__(self, process: subprocess.Popen) -> None:
        self.process = process
        self.lines: list[str] = []
        self.url = ""
        self.drained = threading.Thread(target=lambda: self.lines.extend(process.stdout))

    def await_page(self) -> None:
        """Wait for the line that says where the page is."""
        for line in self.process.stdout:
            self.lines.append(line)
            if match := re.search(r"http://[\w.:\[\]]+", line):
                self.url = match[0]
                break
        self.drained.start()
        assert self.url, "".join(self.lines)

    def ready(self) -> bool:
        """Tell whether it says that all its tasks are open and nothing troubles them."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz"):
                return True
        except urllib.error.HTTPError as error:
            error.close()
            return False

    def metrics(self) -> dict[str, float]:
        """Return the figures of the state that it serves."""
        with urllib.request.urlopen(f"{self.url}/metrics") as page:
            families = text_string_to_metric_families(page.read().decode())
            return {
                f"{sample.name}{json.dumps(_labels(sample.labels))}": sample.value
                for family in families
                if family.name in STATE_METRICS
                for sample in family.samples
                if not sample.name.endswith("_created")
            }


def _labels(of: dict[str, str]) -> dict[str, str]:
    """Return labels as the recorded pages have them, which do not name the ensemble."""
    return {name: of[name] for name in sorted(of) if name != "ensemble"}


def rows(folder: Path) -> dict[str, dict[str, str]]:
    """Return all rows of a state folder as hexadecimal text, by column family and key."""
    families = Rdict.list_cf(str(folder), Options(raw_mode=True))
    options = {name: Options(raw_mode=True) for name in families}
    store = Rdict(
        str(folder), Options(raw_mode=True), column_families=options,
        access_type=AccessType.read_only(),
    )  # fmt: skip
    try:
        return {
            name: {
                key.hex(): value.hex()
                for key, value in store.get_column_family(name).items()
                if not key.startswith(MARK)
            }
            for name in sorted(families)
        }
    finally:
        store.close()


def all_rows(state: Path) -> dict[str, dict[str, dict[str, str]]]:
    """Return the rows of every folder below `state` that RocksDB wrote, by its path."""
    folders = sorted(file.parent for file in state.rglob("CURRENT"))
    return {str(folder.relative_to(state)): rows(folder) for folder in folders}


def topics(address: str, names: Iterable[str], *, committed: bool = True) -> dict[str, list[Any]]:
    """Return all records of topics as plain data, in the order of their offsets, per partition."""
    return asyncio.run(_topics(address, sorted(names), committed))


async def _topics(address: str, names: list[str], committed: bool) -> dict[str, list[Any]]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=address,
        isolation_level="read_committed" if committed else "read_uncommitted",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    async with consumer:
        places = [
            TopicPartition(name, number)
            for name in names
            for number in sorted(await consumer._client._wait_on_metadata(name))
        ]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        await consumer.seek_to_beginning(*places)
        records: dict[str, list[Any]] = {f"{place.topic}/{place.partition}": [] for place in places}
        while unread := [p for p in places if await consumer.position(p) < ends[p]]:
            for place, batch in (await consumer.getmany(*unread, timeout_ms=200)).items():
                records[f"{place.topic}/{place.partition}"] += [_plain(record) for record in batch]
        return records


def _plain(record: Any) -> list[Any]:
    headers = [[name, _hex(value)] for name, value in record.headers]
    times = [record.timestamp, record.timestamp_type]
    return [record.offset, *times, _hex(record.key), _hex(record.value), headers]


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def digests(partitions: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Return, per partition, how many records there are, where the last is, and their digest."""
    return {
        place: {
            "records": len(records),
            "last": records[-1][0] if records else None,
            "sha256": hashlib.sha256(json.dumps(records).encode()).hexdigest(),
        }
        for place, records in partitions.items()
    }


def said(hb: Commands, scratch: Path) -> dict[str, Any]:
    """Return everything that is to read the same after a change, as plain data.

    Prose is left out, for it may be put better: findings and notes are counted.
    """
    letters = scratch / "letters.jsonl"
    audit, latest, summary, status, declared, _ = hb.json(
        ("audit",),
        ("diagnoses", "--limit", 10_000),
        ("deadletters",),
        ("status",),
        ("topics", "describe"),
        ("deadletters", "--export", letters),
    )
    tables = {
        name: {**table, "note": bool(table["note"])} for name, table in audit["tables"].items()
    }
    exported = [json.loads(line) for line in letters.read_text().splitlines()]
    letters.unlink()
    names = [topic["name"] for topic in declared["topics"]]
    diagnoses = latest["diagnoses"]
    return {
        "topics": {
            "committed": digests(topics(hb.address, names)),
            "all": digests(topics(hb.address, names, committed=False)),
        },
        "audit": {
            **{name: audit[name] for name in ("clean", "figures", "vouches")},
            "findings": len(audit["findings"]),
            "tables": tables,
        },
        "replay": replayed(hb),
        "diagnoses": sorted(diagnoses, key=lambda diagnosis: (diagnosis["id"], diagnosis["at"])),
        "dead letters": sorted(exported, key=_place),
        "dead letters by reason": {name: summary[name] for name in ("total", "reasons")},
        "status": status,
    }


def replayed(hb: Commands) -> list[Any]:
    """Return what the learners of today make of the stream, under two settings."""
    changes = ("--set", "ensemble.active=false", "--set", "defaults.exploration=1.0")
    return [report["figures"] for report in hb.json(("replay",), ("replay", *changes))]


def _place(letter: Mapping[str, Any]) -> tuple[str, int, int]:
    return letter["topic"], letter["partition"], letter["offset"]
