"""Records the run that `tests/streams/test_recorded_run.py` reads.

`python -m tests.recorded.record` replaces it, which takes three minutes. Do so only when a new
version cannot read the old run on purpose, and say in the changelog what users have to do.

Two ensembles of two partitions on one embedded broker live through a bad day: late, missing,
wrong, repeated and contradicting labels, labels for nobody, unreadable records on every topic that
strangers write to, patients published twice, a transaction that its client aborts, and a worker
that is killed under load. `second` stops cleanly. `first` is killed, so that its folders hold what
was not flushed, and then patients come that nobody has read yet.

The archive holds the broker's own log, the state folders as they were left, the settings, and
everything that was read from them.
"""

import asyncio
import csv
import json
import random
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer

from streams.broker import EmbeddedBroker
from tests.recorded import kit

PATIENTS = 150
LATER = 8
COLUMNS = ("patient", "x", "y", "z", "site", "age", "truth", "grade")
LEARNERS = {"first": ("a", "b", "c"), "second": ("imaging", "history")}
BAD = (
    b"",
    b"{",
    b"[]",
    b'{"v":1}',
    b'{"v":9,"id":"q","x":[1,2],"label":"benign","at":1}',
    b'{"v":1,"id":"","x":[0.1,0.2],"label":"benign","at":1}',
    b'{"v":1,"id":"q","x":[NaN,0.2],"label":"other","at":1}',
    b'{"v":1,"id":"q","x":[1e999,0.2],"label":7,"at":1}',
    b"\xff\xfe",
)


def patients(n: int, seed: int, name: str) -> list[dict[str, Any]]:
    """Return patients who are ill where x + z is large."""
    rng = random.Random(seed)
    rows = []
    for number in range(n):
        x, y, z = (round(rng.random(), 6) for _ in range(3))
        burden = x + z + rng.gauss(0, 0.1)
        grade = "severe" if burden > 1.3 else "mild" if burden > 0.8 else "none"
        rows.append(
            {
                "patient": f"{name}{number:04d}",
                "x": x,
                "y": y,
                "z": z,
                "site": rng.choice(("left", "right")),
                "age": round(rng.uniform(1, 99), 1),
                "truth": "malignant" if burden > 1.1 else "benign",
                "grade": grade,
            }
        )
    return rows


def write(file: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Write patients as a CSV file."""
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return file


async def send(
    address: str, records: Sequence[tuple[str, str, bytes]], abort: bool = False
) -> None:
    """Send (topic, key, value), in a transaction that is aborted if so wanted."""
    options = {"transactional_id": "a-client-that-aborts"} if abort else {}
    async with AIOKafkaProducer(bootstrap_servers=address, **options) as producer:
        if abort:
            await producer.begin_transaction()
        for topic, key, value in records:
            await producer.send_and_wait(topic, value, key=key.encode(), headers=[("by", b"hand")])
        if abort:
            await producer.abort_transaction()


def await_that(condition: Callable[[], bool], description: str, seconds: float = 120) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, description
        time.sleep(0.3)


def idle(hb: kit.Commands, diagnosed: int) -> bool:
    """Tell whether everything that came is processed, and so many patients are diagnosed."""
    status = hb.json(("status",))[0]
    count = next(t["records"] for t in status["topics"] if t["name"].endswith(".diagnoses"))
    return status["lag"] == 0 and count >= diagnosed


def live(hb: kit.Commands, folder: Path) -> dict[str, float]:
    """Let an ensemble live through its day; return the figures of its worker at the end."""
    name, column = hb.ensemble, "truth" if hb.ensemble == "first" else "grade"
    rows = patients(PATIENTS, len(name), name[0])
    half = PATIENTS // 2
    hb("topics", "create")
    with hb.worker() as worker:
        early = [f"{row['patient']}={row[column]}" for row in rows[:5]]
        hb("label", *early)
        file = write(folder / "rows.csv", rows[:half])
        late = ("--label-delay", "uniform:0s..4s", "--missing", "0.15", "--wrong", "0.05")
        hb("produce", file, "--rate", 40, *late, "--seed", 1)
        worker.process.kill()
    with hb.worker() as worker:
        trouble(hb, rows)
        file = write(folder / "rows.csv", rows[half:])
        hb("produce", file, "--rate", 60, *late, "--seed", 2)
        hb("produce", write(file, rows[: half + 3 : 8]), "--no-labels")
        again = [f"{row['patient']}={row[column]}" for row in rows[:12]]
        hb("label", *again)
        labels = sorted({row[column] for row in rows})
        contrary = [labels[labels.index(row[column]) - 1] for row in rows[half : half + 6]]
        pairs = zip(rows[half : half + 6], contrary, strict=True)
        hb("label", *[f"{row['patient']}={label}" for row, label in pairs])
        hb("label", f"nobody={labels[0]}", f"nobody-else={labels[1]}")
        await_that(lambda: idle(hb, PATIENTS + 1), f"{name}: everything is done")
        figures = settled_figures(worker)
        if name == "first":
            worker.process.kill()
    if name == "first":
        file = write(folder / "rows.csv", patients(LATER, 77, "later"))
        hb("produce", file)
    file.unlink()
    return figures


def trouble(hb: kit.Commands, rows: Sequence[dict[str, Any]]) -> None:
    """Send what cannot be used, a patient that one learner only sees, and an aborted label."""
    name, first = hb.ensemble, LEARNERS[hb.ensemble][0]
    strangers = [f"{name}.instances.{learner}" for learner in LEARNERS[name]]
    strangers += [f"{name}.labels", *([f"{name}.contexts"] if name == "second" else [])]
    bad = [
        (topic, f"bad{k}", value)
        for n, topic in enumerate(strangers)
        for k, value in enumerate(BAD[n % 3 :: 2])
    ]
    lone_row = '"left"' if name == "first" else "0.5"
    at = int(time.time() * 1000)
    lone = f'{{"v":1,"id":"lone","x":[0.25,{lone_row}],"at":{at}}}'.encode()
    asyncio.run(send(hb.address, [*bad, (f"{name}.instances.{first}", "lone", lone)]))
    patient = rows[-1]["patient"]
    label = json.dumps({"v": 1, "id": patient, "label": "severe", "at": at}).encode()
    asyncio.run(send(hb.address, [(f"{name}.labels", patient, label)], abort=True))


def settled_figures(worker: kit.Worker) -> dict[str, float]:
    """Return what the worker serves once it no longer changes."""
    readings = [worker.metrics()]
    unchanged = 8

    def steady() -> bool:
        readings.append(worker.metrics())
        latest = readings[-unchanged:]
        return len(latest) == unchanged and all(figures == latest[0] for figures in latest)

    await_that(steady, "the figures are steady")
    return readings[-1]


def record(archive: Path) -> None:
    """Run everything, read it, and pack it."""
    folder = Path(tempfile.mkdtemp(prefix="hb-recorded-"))
    broker = EmbeddedBroker(folder / "broker")
    expected: dict[str, Any] = {"arithmetic": kit.arithmetic(), "figures": {}, "said": {}}
    try:
        address = broker.up()
        for name in kit.ENSEMBLES:
            shutil.copy(kit.HERE / f"{name}.toml", folder)
            hb = kit.Commands(folder, address, name)
            expected["figures"][name] = live(hb, folder)
            expected["said"][name] = kit.said(hb, folder)
        broker.down()
        shutil.copytree(folder / "state", folder / "copy")
        expected["rows"] = kit.all_rows(folder / "copy")
        (folder / kit.EXPECTED).write_text(json.dumps(expected, sort_keys=True, indent=0))
        pack(folder, archive)
    finally:
        broker.destroy()
        shutil.rmtree(folder)


def pack(folder: Path, archive: Path) -> None:
    """Pack what the test needs: no logs, locks, sockets or process numbers."""
    left = {"LOCK", "LOG", ".lock", "cleaner-offset-checkpoint"}

    def wanted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        base = Path(member.name).name
        if base in left or base.startswith("LOG.old"):
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for name in (*[f"{ensemble}.toml" for ensemble in kit.ENSEMBLES], kit.EXPECTED, "state"):
            tar.add(folder / name, name, filter=wanted)
        tar.add(folder / "broker" / "broker.json", "broker/broker.json", filter=wanted)
        tar.add(folder / "broker" / "node-1" / "data", "broker/node-1/data", filter=wanted)


if __name__ == "__main__":
    record(Path(sys.argv[1]) if len(sys.argv) > 1 else kit.ARCHIVE)
