"""The order, the names and the fate of patients and labels, before anything is sent."""

import asyncio
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from agents.clients.label_delays import parse_delay
from agents.clients.patient_files import CsvPatients, JsonPatients, TablePatients, file_patients
from agents.clients.produce import Production, Trial
from settings.errors import InputError
from tests.unit.agents.toy import SETTINGS

COUNT = 5000


class Recorder:
    """Stands where the broker would: keeps what is sent."""

    def __init__(self):
        self.sent = []

    async def send_many(self, keys, values, at):
        self.sent.append((list(keys), {topic: list(column) for topic, column in values.items()}))


def table(count=COUNT, labels=True, ids=False):
    columns = {"age": list(range(count)), "sex": ["f"] * count, "dose": [0.5] * count}
    truth = ["yes" if i % 4 == 0 else "no" for i in range(count)] if labels else None
    return TablePatients("table", columns, truth, [f"p{i}" for i in range(count)] if ids else None)


def pieces(source, **options):
    return list(Production(SETTINGS, source, Trial(**options))._pieces())


def ages(parts):
    return [age for piece in parts for age in piece.columns["age"]]


def test_everything_comes_once_in_order():
    parts = pieces(table())
    assert ages(parts) == list(range(COUNT))
    assert len({name for piece in parts for name in piece.ids}) == COUNT


@pytest.mark.parametrize(
    ("options", "count"),
    [({"limit": 7}, 7), ({"repeat": 3}, 300), ({"repeat": 3, "limit": 250}, 250), ({}, 100)],
)
def test_limits_and_repeats(options, count):
    parts = pieces(table(100, ids=True), **options)
    names = [name for piece in parts for name in piece.ids]
    assert len(names) == len(set(names)) == count
    shares = [piece.share for piece in parts]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert all(0 < share <= 1 for share in shares)


def test_a_long_file_is_not_done_with_its_first_piece():
    assert pieces(table(100), rate=50.0)[0].share == pytest.approx(0.01)
    assert pieces(table(100), rate=50.0, limit=10)[0].share == pytest.approx(0.1)


def test_a_shuffle_is_a_permutation_that_a_seed_repeats():
    first, again = (ages(pieces(table(), shuffle=True, seed=3)) for _ in range(2))
    assert first == again != list(range(COUNT))
    assert sorted(first) == list(range(COUNT))
    twice = ages(pieces(table(50), shuffle=True, seed=3, repeat=2))
    assert twice[:50] != twice[50:]


@pytest.mark.parametrize(("rate", "size"), [(None, 2000), (10.0, 1), (1000.0, 20), (1e9, 2000)])
def test_pieces_suit_the_rate(rate, size):
    assert len(pieces(table(), rate=rate)[0]) == size


async def test_labels_are_due_later_and_some_are_lost_or_wrong():
    trial = Trial(missing=0.3, wrong=0.2, seed=1, delay=parse_delay("1h"))
    production = Production(SETTINGS, table(), trial)
    sender = Recorder()
    for piece in production._pieces():
        await production._send(sender, piece)
        await production._send_labels(sender)
    summary = production.done
    assert summary.patients == COUNT
    assert summary.labels == 0, "none is due yet"
    assert summary.waiting + summary.withheld == COUNT
    assert summary.withheld == pytest.approx(0.3 * COUNT, rel=0.1)
    assert summary.wrong == pytest.approx(0.7 * 0.2 * COUNT, rel=0.2)
    labels = Counter(label for _, _, _, label in production._due)
    assert labels["yes"] + labels["no"] == summary.waiting
    assert {topic for _, values in sender.sent for topic in values} == {
        "toy.instances.left",
        "toy.instances.right",
        "toy.contexts",
    }


async def test_whoever_continues_publishes_the_same_labels():
    trial = Trial(missing=0.3, wrong=0.3, seed=1, delay=parse_delay("exp:1h"), run="r")
    labels = []
    for start, rate in ((0, None), (1234, 1000.0)):
        production = Production(SETTINGS, table(), replace(trial, start=start, rate=rate))
        for piece in production._pieces():
            if production.done.taken < start:
                production._label_again(piece)
            else:
                await production._send(Recorder(), piece)
            production.done.taken += len(piece)
        labels.append({due.id: due.label for due in production._due})
    assert labels[0] == labels[1]


async def test_what_will_be_sent_is_noticed_with_its_truth():
    noticed = {}
    production = Production(
        SETTINGS,
        table(10, ids=True),
        Trial(labels=False),
        notice=lambda ids, labels: noticed.update(zip(ids, labels, strict=True)),
    )
    for piece in production._pieces():
        await production._send(Recorder(), piece)
    assert noticed["p4"] == "yes"
    assert len(noticed) == 10
    assert production._due == []


@pytest.mark.parametrize(
    ("text", "low", "high", "mean"),
    [
        ("0", 0, 0, 0),
        ("250ms", 0.25, 0.25, 0.25),
        ("exp:2s", 0, np.inf, 2.0),
        ("uniform:1s..3s", 1, 3, 2.0),
        ("uniform:0s..0s", 0, 0, 0),
    ],
)
def test_delays(text, low, high, mean):
    drawn = parse_delay(text).draw(np.random.default_rng(0), 20_000)
    assert low <= drawn.min()
    assert drawn.max() <= high
    assert drawn.mean() == pytest.approx(mean, rel=0.05)
    assert str(parse_delay(text)) == text


@pytest.mark.parametrize(
    "text", ["", "5", "soon", "exp:", "exp:x", "uniform:1s", "uniform:3s..1s", "normal:1s", "-1s"]
)
def test_a_text_that_is_not_a_delay_is_reported(text):
    with pytest.raises(InputError, match="expected 5s, exp:5s"):
        parse_delay(text)


def test_files_are_known_by_their_ending(tmp_path):
    (tmp_path / "a.csv").write_text("id;age;sex;dose;other\n7;1; f ;0.5;x\n")
    (tmp_path / "a.jsonl").write_text('{"id": 7, "age": 1, "sex": "f", "dose": 0.5}\n\n')
    csv = file_patients(tmp_path / "a.csv", SETTINGS)
    json = file_patients(tmp_path / "a.jsonl", SETTINGS)
    assert isinstance(csv, CsvPatients)
    assert isinstance(json, JsonPatients)
    assert not csv.labelled
    assert next(iter(csv.chunks())).ids is None, "columns.id is not set"
    (batch,) = json.chunks()
    assert batch.ids == ["7"]
    assert batch.columns["age"] == [1]
    assert (batch.lines, batch.share) == ([1], pytest.approx(1.0, abs=0.1))
    (tmp_path / "b.jsonl").write_text("\n")
    with pytest.raises(InputError, match="the file is empty"):
        file_patients(tmp_path / "b.jsonl", SETTINGS)
    with pytest.raises(InputError, match="there is no such file"):
        file_patients(tmp_path / "c.jsonl", SETTINGS)


class Slow(Recorder):
    """A broker that has everything before it acknowledges it."""

    def __init__(self):
        super().__init__()
        self.arrived, self.answered = asyncio.Event(), asyncio.Event()

    async def send_many(self, keys, values, at):
        await super().send_many(keys, values, at)
        self.arrived.set()
        await self.answered.wait()


async def test_what_was_sent_when_it_was_told_to_stop_is_counted():
    production, slow = Production(SETTINGS, table(10), Trial(delay=parse_delay("1h"))), Slow()
    (piece,) = production._pieces()
    sending = asyncio.create_task(production._send(slow, piece))
    await slow.arrived.wait()
    sending.cancel()
    slow.answered.set()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert (production.done.patients, production.done.waiting) == (10, 10)


async def test_ids_that_came_before_are_counted():
    columns = {"age": [1, 2, 3, 4], "sex": ["f"] * 4, "dose": [0.5] * 4}
    source = TablePatients("table", columns, None, ["a", "b", "a", "a"])
    production, recorder = Production(SETTINGS, source, Trial()), Recorder()
    for piece in production._pieces():
        await production._send(recorder, piece)
    assert (production.done.patients, production.done.repeated) == (4, 2)
