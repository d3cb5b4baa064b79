"""What is fuzzed: each decoder with good inputs, and the errors with which it may refuse others."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import orjson

from agents.clients.deadletters import Replayer, as_letter
from agents.clients.label_publishing import pairs_in
from agents.clients.patient_files import file_patients
from agents.clients.splitting import Splitter, label_value
from agents.monitor.console.curves_file import CurvesFile
from agents.monitor.console.history import History, point
from agents.monitor.scores import Scores
from agents.state_encoding import pack_state, unpack_state
from agents.testing import Agent, Pipeline
from agents.worker_pages import announced, worker_pages
from bench.fuzz.mutations import SEPARATOR
from bench.pipeline.job import LABELS, write_settings
from learners.errors import LearnerError
from learners.rules.object_graphs import Vocabulary, read, write
from schemas.examples import EXAMPLES
from schemas.reading import LabelReader, Reader
from schemas.records import Record
from schemas.rows import Feature, RowReader
from schemas.writing import encode
from settings.errors import HbError
from settings.loading import source_of, validate
from settings.model import Settings
from settings.proposing.from_csv import Wishes, propose
from streams.broker.cluster_layout import load_plan, new_plan
from streams.engine.changelogs.changelog import META_KEY, Changelogs
from streams.engine.changelogs.origin import Origin
from streams.engine.changelogs.origin_reader import _parsed
from streams.engine.changelogs.replica import Replica
from streams.engine.config import EngineConfig
from streams.engine.state import CountsTable, EntriesTable
from streams.engine.state.store import Store
from streams.engine.state.table import reading
from streams.kafka.batch import Batch

_PATIENTS = 8


@dataclass(frozen=True, slots=True)
class Target:
    """One decoder: what it is given, and which errors are an answer."""

    corpus: list[bytes]
    run: Callable[[bytes], object]
    refuses: tuple[type[Exception], ...] = ()


def targets(folder: Path) -> dict[str, Target]:
    """Return every target by name; files go to a folder that the caller removes."""
    settings = write_settings(folder, "127.0.0.1:9", "fuzz")
    return {
        **_records(),
        "dead letter": _dead_letters(),
        "settings file": _settings_file(folder),
        "csv file": _patients(folder, settings, "patients.csv"),
        "json file": _patients(folder, settings, "patients.jsonl"),
        "label file": _labels(folder, settings),
        "proposal": _proposal(folder),
        "curves": _curves(settings),
        "client": _client(settings),
        "export of dead letters": _export(settings),
        "stored arrays": Target([pack_state(_STATE)], unpack_state, (HbError,)),
        "stored model": _model(),
        "changelog": _changelog(folder),
        "replica": _replica(),
        "origin": Target([_META], _parsed),
        "state of the agents": _agents(folder),
        "broker's plan": _plan(folder),
        "announced page": _announced(folder),
    }


def _records() -> dict[str, Target]:
    examples = [example for example in EXAMPLES.values() if isinstance(example, Record)]
    corpus = [encode(example) for example in examples]
    readers: dict[str, Any] = {type(e).__name__.lower(): Reader(type(e)) for e in examples}
    readers |= {"labels": LabelReader(LABELS), "rows": RowReader([Feature("a"), Feature("b")])}
    return {f"record {name}": Target(corpus, _reads(reader)) for name, reader in readers.items()}


def _reads(reader: Any) -> Callable[[bytes], object]:
    return lambda data: reader.read([data])


def _dead_letters() -> Target:
    good = {"reason": "malformed", "topic": "t", "partition": 0, "offset": 5, "detail": "d"}

    def run(data: bytes) -> object:
        pairs = (part.partition(b"=") for part in data.split(b"&"))
        headers = [(name.decode(errors="replace"), value) for name, _, value in pairs]
        place = SimpleNamespace(topic="t", partition=0, offset=1, timestamp=1, key=data[:4])
        return as_letter(SimpleNamespace(**vars(place), headers=headers, value=data))

    corpus = b"&".join(f"{name}={value}".encode() for name, value in good.items())
    return Target([corpus, b"hb." + corpus.replace(b"&", b"&hb.")], run)


def _settings_file(folder: Path) -> Target:
    file = folder / "ensemble.toml"

    def run(data: bytes) -> object:
        return validate(source_of(data.decode(errors="replace"), file))

    deployed = Path(__file__).parents[2] / "deploy" / "ensemble.toml"
    return Target([file.read_bytes(), deployed.read_bytes()], run, (HbError,))


def _patients(folder: Path, settings: Settings, name: str) -> Target:
    columns = [
        feature.name for learner in settings.learners.values() for feature in learner.features
    ]
    names = ["id", *columns, "label"]
    rows = [[f"p{n}", *(f"0.{n}" for _ in columns), LABELS[n % 2]] for n in range(4)]
    if name.endswith("csv"):
        text = "\n".join(",".join(row) for row in [names, *rows]).encode()
    else:
        text = b"\n".join(orjson.dumps(dict(zip(names, row, strict=True))) for row in rows)
    file = folder / name

    def run(data: bytes) -> object:
        file.write_bytes(data)
        source = file_patients(file, settings)
        splitter = Splitter(settings, texts=source.texts)
        return [splitter.faults(part.ids or [], part.columns) for part in source.chunks()]

    return Target([text], run, (HbError,))


def _labels(folder: Path, settings: Settings) -> Target:
    def run(data: bytes) -> object:
        # A label file says by its name what it is; its first byte chooses here.
        file = folder / ("labels.jsonl" if data.startswith(b"{") else "labels.csv")
        file.write_bytes(data)
        return pairs_in(file, settings)

    rows = [{"id": "p1", "label": LABELS[0]}, {"id": "p2", "label": LABELS[1]}]
    text = "id,label\n" + "".join(f"{row['id']},{row['label']}\n" for row in rows)
    return Target([text.encode(), b"\n".join(map(orjson.dumps, rows))], run, (HbError,))


def _proposal(folder: Path) -> Target:
    """A file that `hb init` proposes settings for."""
    file = folder / "history.csv"
    rows = [f"p{n},{n / 7:.2f},{'left' if n % 3 else 'right'},{LABELS[n % 2]}" for n in range(30)]

    def run(data: bytes) -> object:
        file.write_bytes(data)
        return propose(file, Wishes())

    return Target(["\n".join(["id,size,side,diagnosis", *rows]).encode()], run, (HbError,))


def _curves(settings: Settings) -> Target:
    """The console's curves of the last worker, which the next one continues."""
    file, history = CurvesFile(settings), History()
    for labels in range(3):
        history.add(point(settings, Scores(labelled=labels), labels))
        history.mark(labels, "restart", "the worker restarted")
    file.save(history)
    good = file._file.read_bytes()

    def run(data: bytes) -> None:
        file._file.write_bytes(data)
        continued = History()
        CurvesFile(settings).load(continued, 1)
        continued.add(point(settings, Scores(labelled=9), 9))

    return Target([good], run)


def _client(settings: Settings) -> Target:
    """Features, id and label as a user's program hands them over."""
    splitter = Splitter(settings)
    columns = [
        feature.name for learner in settings.learners.values() for feature in learner.features
    ]
    good = {"id": "p1", "label": LABELS[0], "features": dict.fromkeys(columns, 0.5)}

    def run(data: bytes) -> None:
        try:
            content = orjson.loads(data)
            name, label, features = content["id"], content["label"], content["features"]
        except (ValueError, LookupError, TypeError):
            return
        if isinstance(features, dict) and isinstance(name, str) and isinstance(label, str):
            splitter.one(name, features, 1)
            label_value(name, label, 1, LABELS)

    return Target([orjson.dumps(good)], run, (HbError, ValueError))


def _export(settings: Settings) -> Target:
    replayer = Replayer(settings)
    label = {"v": 1, "id": "p1", "label": LABELS[0], "at": 1}
    lines = [orjson.dumps({"topic": topic, "value": label}) for topic in replayer._readers]
    return Target(lines, lambda data: replayer._checked("line 1", data), (HbError,))


_STATE = {
    "counts": np.arange(6).reshape(2, 3),
    "mean": np.linspace(0, 1, 4),
    "learned": np.array(7),
}


def _model() -> Target:
    from river import linear_model, tree

    models = linear_model.LogisticRegression(), tree.HoeffdingTreeClassifier()
    for number in range(20):
        for model in models:
            model.learn_one({"a": number % 3, "b": float(number)}, bool(number % 2))
    vocabulary = Vocabulary()
    stored = [write(model, vocabulary) for model in models]
    return Target(stored, lambda data: read(data, vocabulary), (LearnerError,))


_META = orjson.dumps(
    {
        "version": 1,
        "layout": {"counts": "counts:1:<i8", "seen": "entries:1"},
        "positions": {"in": 5},
        "origin": {"owner": "fuzz", "topics": {"in": "a"}, "meaning": {"labels": "b"}},
    }
)
_RECORDS = [
    META_KEY + SEPARATOR + _META,
    b"counts/" + bytes(8) + SEPARATOR + bytes(8),
    b"seen/patient" + SEPARATOR + msgspec.msgpack.encode(["open", 1, [0, 1]]),
]


def _batch(data: bytes, topic: str) -> Batch:
    key, _, value = data.partition(SEPARATOR)
    return Batch(topic, 0, 0, 1, 1, [0], [1], [key], [value])


def _changelog(folder: Path) -> Target:
    tables = [CountsTable("counts", 1, shared=False), EntriesTable("seen")]
    store = Store(folder / "store", [table.name for table in tables])

    def run(data: bytes) -> None:
        origin = Origin("fuzz", {}, {"labels": "b"})
        Changelogs(tables, store, 0, "log", "shared", origin=origin).apply(_batch(data, "log"))
        with reading("the state"):
            for table in tables:
                table.load(store)
            changes = {"counts": [(key, None) for key in store.keys("counts")]}
            store.write(changes, offsets={}, positions={}, layout={})

    return Target(_RECORDS, run, (HbError,))


def _replica() -> Target:
    tables = [CountsTable("counts", 1), EntriesTable("seen", shared=True)]
    nowhere = EngineConfig("fuzz", "fuzz.", {}, Path(), "dead")
    return Target(
        _RECORDS, lambda data: Replica(nowhere, "a", tables).apply(_batch(data, "")), (HbError,)
    )


def _agents(folder: Path) -> Target:
    """Rows of every table of every agent, one of them changed before a restart."""
    settings = write_settings(
        folder, "127.0.0.1:9", "fuzz", 'learners.imaging.rules={lr={kind="bayes"}}'
    )
    pipeline = Pipeline(settings)
    columns = [
        feature.name for learner in settings.learners.values() for feature in learner.features
    ]
    for number in range(_PATIENTS):
        features = dict.fromkeys(columns, number / _PATIENTS)
        pipeline.patient(f"p{number}", features, unseen_by=["history"] if number % 3 else ())
        if number % 2:
            pipeline.label(f"p{number}", LABELS[number % 3 > 1])
    pipeline.restart()
    saved = {name: agent._saved._rows for name, agent in pipeline.agents.items()}
    corpus = [
        SEPARATOR.join((name.encode(), table.encode(), key, value))
        for name, tables in saved.items()
        for table, rows in tables.items()
        for key, value in rows.items()
    ]
    return Target(corpus, lambda data: _restarted(pipeline, data), (HbError,))


def _restarted(pipeline: Pipeline, data: bytes) -> None:
    name, table, key, value = (*data.split(SEPARATOR, 3), b"", b"", b"")[:4]
    old = pipeline.agents.get(name.decode(errors="replace"))
    if old is None or table.decode(errors="replace") not in old.tables:
        return
    agent = Agent(old.spec)
    agent._saved._rows = {table_name: dict(rows) for table_name, rows in old._saved._rows.items()}
    agent._saved.write(table.decode(), [(key, value)])
    with reading("the state"):  # as the engine does it when it loads the tables
        agent._start()


def _plan(folder: Path) -> Target:
    file = folder / "broker.json"
    new_plan("4.0.0", 1).save(file)

    def run(data: bytes) -> object:
        file.write_bytes(data)
        return load_plan(file)

    return Target([file.read_bytes()], run, (HbError,))


def _announced(folder: Path) -> Target:
    state = folder / "announced"
    with announced(state, ["local.a"], "http://127.0.0.1:1", console=True):
        (file,) = (state / "workers").iterdir()
        good = file.read_bytes()

    def run(data: bytes) -> object:
        file.write_bytes(data)
        return worker_pages(state)

    return Target([good], run)
