"""`hb produce`, `label`, `diagnoses`, `deadletters` and plain kcat, on a real broker."""

import asyncio
import csv
import os
import re
import shlex
import signal
import stat
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import orjson
import pytest
from engine_kit import PATIENCE, committed
from user_kit import HB, PATIENT, ensemble, worker_process

from agents.clients.sender import Sender
from settings.loading import load_settings
from streams.clock import wall
from streams.kafka.partitions import partition_of
from streams.kafka.topics import Topics
from tests.cli_runs import Hb
from tests.conftest import need_tool

USE = Path(__file__).parents[2] / "docs/use.md"
HEADER = ["patient", "radius", "texture", "age", "site", "truth"]


@pytest.fixture
def hb(monkeypatch, capsys):
    return Hb(monkeypatch, capsys)


@pytest.fixture
def here(tmp_path, broker_address, prefix, monkeypatch):
    """A folder with the settings of an ensemble without workers."""
    ensemble(tmp_path, broker_address, prefix.strip("."))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def live_file(tmp_path_factory, broker_address):
    file = ensemble(tmp_path_factory.mktemp("live"), broker_address, "commands", partitions=4)
    with worker_process(file):
        yield file


@pytest.fixture
def live(live_file, monkeypatch):
    """The folder of an ensemble whose worker runs."""
    monkeypatch.chdir(live_file.parent)
    return live_file.parent


def topics():
    return Topics.of(load_settings())


def rows(count, *, ids=True, first=0):
    for i in range(first, first + count):
        ill = i % 3 == 0
        yield [f"p{i}" if ids else "", 10 + i % 7, 20.5, 30 + i % 50, "left", _truth(ill)]


def _truth(ill):
    return "malignant" if ill else "benign"


def write_csv(folder, table, name="patients.csv", header=HEADER):
    file = folder / name
    with file.open("w", newline="") as out:
        csv.writer(out).writerows([header, *table])
    return file


def records(address, topic):
    return asyncio.run(committed(address, topic))


def read(address, topic):
    return [orjson.loads(record.value) for record in records(address, topic)]


def publish(topic, values):
    settings = load_settings()

    async def send():
        async with Sender(settings, [topic]) as sender:
            for key, value in values.items():
                await sender.send(key.encode(), {topic: value}, wall())

    asyncio.run(send())


def until(ask, good, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not good(answer := ask()):
        assert time.monotonic() < deadline, answer
    return answer


def start(*arguments):
    """Start `hb` as a process of its own."""
    command = [*HB, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_file_of_patients_is_published(hb, here, broker_address):
    run = hb("produce", write_csv(here, rows(50)), "--json")
    assert run.code == 0
    assert run.json["patients"] == run.json["labels"] == 50
    imaging = read(broker_address, topics().instances("imaging"))
    history = read(broker_address, topics().instances("history"))
    labels = read(broker_address, topics().labels)
    assert {instance["id"] for instance in imaging} == {f"p{i}" for i in range(50)}
    assert {instance["id"]: instance["x"] for instance in history}["p3"] == {
        "age": 33.0,
        "site": "left",
    }
    assert {label["id"]: label["label"] for label in labels} == {
        f"p{i}": _truth(i % 3 == 0) for i in range(50)
    }
    limited = hb("produce", here / "patients.csv", "--no-labels", "--limit", 7)
    assert (limited.code, limited.out.splitlines()[0]) == (0, "published: 7 patients, 0 labels")


def test_json_lines_repeats_and_made_up_ids(hb, here, broker_address):
    file = here / "patients.jsonl"
    lines = [{**PATIENT, "truth": _truth(i % 2)} for i in range(10)]
    file.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    assert hb("produce", file, "--repeat", 3, "--shuffle", "--json").json["patients"] == 30
    ids = {instance["id"] for instance in read(broker_address, topics().instances("imaging"))}
    assert len(ids) == 30
    named = write_csv(here, rows(5))
    assert hb("produce", named, "--repeat", 2, "--json").json["labels"] == 10
    labelled = {label["id"] for label in read(broker_address, topics().labels)}
    assert {"p0", "p4", "p0~2", "p4~2"} <= labelled
    assert len(labelled) == 40


def test_trials_lose_and_spoil_labels(hb, here, broker_address):
    file = write_csv(here, rows(600))
    options = ("--seed", 5, "--missing", 0.5, "--wrong", 0.1, "--label-delay", "uniform:0s..0.2s")
    run = hb("produce", file, *options, "--json").json
    assert run["patients"] == 600
    assert run["labels"] + run["withheld"] == 600
    assert 240 < run["withheld"] < 360
    published = {e["id"]: e["label"] for e in read(broker_address, topics().labels)}
    wrong = sum(label != _truth(int(name[1:]) % 3 == 0) for name, label in published.items())
    assert wrong == run["wrong"]
    assert 10 < wrong < 60


def test_patients_come_at_the_wanted_rate_and_labels_later(hb, here, broker_address):
    file = write_csv(here, rows(20))
    began = time.time()
    assert hb("produce", file, "--rate", 40, "--label-delay", "1s").code == 0

    def times(topic):
        return {r.key: r.timestamp for r in records(broker_address, topic)}

    came, labelled = times(topics().instances("imaging")), times(topics().labels)
    # No one comes early, however busy the machine is; a timestamp is cut to milliseconds.
    early = [key for key, at in came.items() if at + 1 < 1000 * (began + int(key[1:]) / 40)]
    assert early == []
    delays = [labelled[key] - came[key] for key in came]
    assert min(delays) >= 990


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({1: "abc"}, "column 'radius': expected a finite number"),
        ({2: "12 mm"}, "column 'texture': expected a finite number"),
        ({5: "unsure"}, "column 'truth': expected one of benign, malignant, or nothing"),
        ({0: ""}, "column 'patient': expected 1 to 200 characters"),
    ],
)
def test_a_bad_row_is_named_without_its_value(hb, here, broker_address, change, message):
    table = list(rows(10))
    for column, value in change.items():
        table[6][column] = value
    run = hb("produce", write_csv(here, table))
    assert run.code == 3
    assert f"patients.csv:8: {message}" in run.err
    assert "Nothing was sent" in run.err
    assert records(broker_address, topics().instances("imaging")) == []
    assert "abc" not in run.err
    skipped = hb("produce", here / "patients.csv", "--skip-bad", "--json").json
    assert skipped["patients"] == skipped["labels"] == 9
    assert sum(skipped["skipped"].values()) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere.csv"], 3, "nowhere.csv: there is no such file"),
        ([], 2, "give a FILE or a --dataset"),
        (["--dataset", "wdbc"], 3, "wdbc has no feature 'radius'"),
        (["patients.csv", "--label-delay", "soon"], 3, "--label-delay soon: expected 5s, exp:5s"),
        (["patients.csv", "--missing", "2"], 2, "less than or equal to 1"),
        (["short.csv"], 3, "short.csv: no column 'age', 'site'"),
        (["bad.jsonl"], 3, "bad.jsonl:2: expected one JSON object"),
    ],
)
def test_what_cannot_be_published_is_reported(hb, here, arguments, code, message):
    write_csv(here, rows(3))
    write_csv(here, [[1, 2]], "short.csv", ["radius", "texture"])
    (here / "bad.jsonl").write_text('{"radius": 1}\n[1]\n')
    run = hb("produce", *arguments)
    assert run.code == code
    assert message in run.err


def test_a_file_without_labels_is_taken_as_it_is(hb, here):
    file = write_csv(here, [row[:5] for row in rows(3)], header=HEADER[:5])
    run = hb("produce", file)
    assert run.code == 0
    assert "has no labels, so none are published" in run.err
    assert "has no labels" in hb("produce", file, "--label-delay", "5s").err


def test_ctrl_c_reports_what_was_published_and_how_to_continue(hb, here, broker_address):
    write_csv(here, rows(900))
    # So slowly that it is at work for minutes.
    process = start("produce", "patients.csv", "--rate", 5, "--label-delay", "1h")
    few = topics().instances("imaging")
    until(lambda: records(broker_address, few), lambda published: len(published) > 2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    message = re.fullmatch(
        r"interrupted: (\d+) patients, 0 labels.*\n  (\d+) labels were still waiting and were not"
        r" published\n  to continue, and to publish the labels again: hb (produce .*)\n",
        out,
    )
    assert message
    arrived = len(read(broker_address, topics().instances("imaging")))
    assert int(message[1]) == int(message[2]) == arrived < 900
    going_on = shlex.split(message[3])
    assert {"--rate 5.0", "--label-delay 1h"} <= set(map(" ".join, pairwise(going_on)))
    resumed = hb(*going_on, "--rate", 1e6, "--label-delay", 0, "--json").json
    assert (resumed["patients"], resumed["labels"]) == (900 - arrived, 900)
    ids = [instance["id"] for instance in read(broker_address, topics().instances("imaging"))]
    assert len(ids) == len(set(ids)) == 900


def test_labels_by_hand_and_from_files(hb, here, broker_address):
    assert hb("label", "a17=malignant", "b=2=benign").out == "published: 2 labels\n"
    write_csv(here, rows(4), "labels.csv")
    assert hb("label", "--file", "labels.csv", "--json").json["labels"] == 4
    (here / "labels.jsonl").write_text('{"patient": "j1", "truth": "benign"}\n')
    assert hb("label", "--file", "labels.jsonl").code == 0
    published = {label["id"]: label["label"] for label in read(broker_address, topics().labels)}
    assert published["b=2"] == "benign"
    assert published["p3"] == "malignant"
    assert published["j1"] == "benign"
    bad = hb("label", "a=benign", "b=unsure")
    assert bad.code == 3
    assert "argument 2: label: expected one of benign, malignant" in bad.err
    assert "argument 1: expected ID=LABEL" in hb("label", "a17").err
    assert hb("label").code == 2
    assert len(read(broker_address, topics().labels)) == 7, "all or none"


def test_patients_come_back_as_diagnoses(hb, live):
    assert hb("produce", write_csv(live, rows(40)), "--json").json["patients"] == 40
    followed = [orjson.loads(line) for line in follow(hb, live, 1000, "--json")]
    assert len(followed) == 5
    assert all(
        diagnosis["complete"] and diagnosis["learners"].keys() == {"imaging", "history"}
        for diagnosis in followed
    )
    latest = hb("diagnoses", "--limit", 3, "--json").json["diagnoses"]
    assert len(latest) == 3
    opinions = lambda shown: shown.count("benign") + shown.count("malignant")  # noqa: E731
    shown = until(lambda: hb("diagnoses", "--limit", 100).out, lambda shown: opinions(shown) >= 45)
    detail = hb("diagnosis", latest[0]["id"], "--json").json
    assert detail["diagnosis"] == latest[0]
    assert "chance: " in hb("diagnosis", latest[0]["id"]).out
    assert "no diagnoses" not in shown


def follow(hb, folder, first, *options):
    """Return what `hb diagnoses --follow` prints while five patients come."""
    process = start("diagnoses", "--follow", "--limit", 5, *options)
    assert process.stderr.readline() == "waiting for diagnoses; Ctrl-C to stop\n"
    assert hb("produce", write_csv(folder, rows(5, first=first))).code == 0
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")
    return out.splitlines()


def test_following_prints_lines_where_there_is_no_terminal(hb, live):
    lines = follow(hb, live, 2000)
    assert len(lines) == 5
    shown = re.compile(r"(benign|malignant)(\?\))?  [<>]?[\d.]+ %  .+  imaging: ")
    assert all(shown.search(line) for line in lines)


def test_following_ends_with_ctrl_c(here):
    process = start("diagnoses", "--follow")
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (0, "", "")


def test_nothing_to_show_yet(hb, here):
    assert hb("diagnoses").out == "no diagnoses yet\n"
    assert hb("diagnoses", "--json").json == {"diagnoses": []}
    run = hb("diagnosis", "nobody")
    assert (run.code, "no diagnosis of this patient" in run.err) == (3, True)
    assert hb("deadletters").out == "no dead letters\n"


def test_dead_letters_are_counted_exported_corrected_and_sent_again(hb, live):
    before = hb("deadletters", "--json").json["total"]
    topic = topics().instances("imaging")
    bad = {"v": 1, "id": "dead1", "x": {"radius": 12.0, "teksture": 1}, "at": 5}
    publish(topic, {"dead1": orjson.dumps(bad), "dead2": b"\xff\xfe", "dead3": b"no json"})
    assert hb("label", "unheard-of=benign").code == 0
    report = until(
        lambda: hb("deadletters", "--json", "--show", 10).json,
        lambda counted: counted["total"] == before + 3,
    )
    assert report["reasons"]["extra_feature"] == 1
    assert {"key", "value"}.isdisjoint(report["letters"][0])
    shown = " ".join(hb("deadletters", "--show", 2).out.split())
    assert "extra_feature" in shown
    assert "dead1" not in shown

    file = live / "dead.jsonl"
    assert hb("deadletters", "--export", file, "--json").json["exported"] == before + 3
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "already exists" in hb("deadletters", "--export", file).err
    lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    mine = next(letter for letter in lines if isinstance(letter.get("value"), dict))
    assert mine["value"] == bad
    refused = hb("deadletters", "--replay", file)
    assert refused.code == 3
    assert re.search(r"dead.jsonl:\d: ", refused.err)
    mine["value"]["x"]["texture"] = mine["value"]["x"].pop("teksture")
    file.write_bytes(orjson.dumps(mine))
    assert hb("deadletters", "--replay", file, "--json").json == {"sent": {topic: 1}}
    history = {"v": 1, "id": "dead1", "x": {"age": 50, "site": "left"}, "at": 5}
    publish(topics().instances("history"), {"dead1": orjson.dumps(history)})
    latest = until(
        lambda: hb("diagnoses", "--limit", 1, "--json").json["diagnoses"],
        lambda newest: newest[0]["id"] == "dead1",
    )
    assert latest[0]["complete"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{}", "dead.jsonl:1: expected a JSON object with topic and value"),
        (
            '{"topic": "else", "value": {}}',
            "dead.jsonl:1: topic: only records for these topics can be sent again",
        ),
        ('{"topic": "LABELS", "value": {"v": 1}}', "dead.jsonl:1: missing_field: id"),
        ('{"topic": "LABELS", "value": "no json"}', "dead.jsonl:1: malformed"),
    ],
)
def test_what_cannot_be_sent_again_is_reported(hb, here, line, message):
    (here / "dead.jsonl").write_text(line.replace("LABELS", topics().labels))
    run = hb("deadletters", "--replay", "dead.jsonl")
    assert run.code == 3
    assert message in run.err
    assert hb("deadletters", "--replay", "dead.jsonl", "--show", 3).code == 2


def test_the_kcat_commands_of_the_docs(live, broker_address):
    """Run every kcat example of docs/use.md as it stands there, in order."""
    need_tool("kcat", "kcat")
    blocks = re.findall(r"```sh\n(.*?)```", USE.read_text(), re.DOTALL)
    *writing, reading = [block for block in blocks if "kcat" in block]
    for script in writing:
        assert shell(script, broker_address) == []
    answer = until(lambda: shell(reading, broker_address), lambda ids: "a17" in ids)
    assert answer.count("a17") == 1
    for topic in (topics().instances("imaging"), topics().labels):
        mine = [
            record.partition for record in records(broker_address, topic) if record.key == b"a17"
        ]
        assert mine == [partition_of(b"a17", 4)]


def shell(script, address):
    """Run a script and return the ids of the records that it prints."""
    env = {**os.environ, "BROKER": address, "PREFIX": topics().prefix}
    run = subprocess.run(
        ["sh", "-euc", script], capture_output=True, text=True, env=env, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    return [orjson.loads(line)["id"] for line in run.stdout.splitlines()]
