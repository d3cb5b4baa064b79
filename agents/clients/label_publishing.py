"""Publishes labels from a command line or a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from agents.clients.pseudonyms import Pseudonyms
from agents.clients.sender import Sender
from agents.clients.splitting import PatientError, label_value
from settings.errors import InputError
from settings.model import Settings
from settings.proposing.csv_file import CsvFile
from streams.clock import wall
from streams.kafka.topics import Topics


class PatientLabel(NamedTuple):
    """A label, its patient's id, and where they were found; None withdraws a label."""

    where: str
    id: str
    label: str | None


def pairs_of(arguments: Sequence[str]) -> list[PatientLabel]:
    """Read `ID=LABEL` arguments; an id may contain equals signs, so the last one separates.

    >>> pairs_of(["a17=benign", "b=2=malignant"])
    [PatientLabel(where='argument 1', id='a17', label='benign'),
     PatientLabel(where='argument 2', id='b=2', label='malignant')]
    """
    pairs = []
    for number, argument in enumerate(arguments, 1):
        name, equals, label = argument.rpartition("=")
        if not equals:
            raise InputError(f"argument {number}: expected ID=LABEL, such as a17=benign")
        pairs.append(PatientLabel(f"argument {number}", name, label))
    return pairs


def withdrawals(names: Sequence[str]) -> list[PatientLabel]:
    """Return what withdraws the labels of some patients."""
    return [
        PatientLabel(f"--withdraw, patient {number}", name, None)
        for number, name in enumerate(names, 1)
    ]


def pairs_in(path: Path, settings: Settings) -> list[PatientLabel]:
    """Read the ids and labels of a CSV or JSONL file; other columns do not matter."""
    keys = settings.columns.id or "id", settings.columns.label or "label"
    if path.suffix.lower() in {".jsonl", ".ndjson", ".json"}:
        return _from_json(path, keys)
    return [
        PatientLabel(f"{path}:{line}", name.strip(), label.strip())
        for chunk in CsvFile(path).chunks(keys)
        for line, name, label in zip(
            chunk.lines, chunk.columns[keys[0]], chunk.columns[keys[1]], strict=True
        )
    ]


def _from_json(path: Path, keys: tuple[str, str]) -> list[PatientLabel]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot read it: {error.strerror}") from None
    pairs = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
            pairs.append(PatientLabel(f"{path}:{number}", str(row[keys[0]]), str(row[keys[1]])))
        except (orjson.JSONDecodeError, KeyError, TypeError):
            expected = f"a JSON object with {keys[0]!r} and {keys[1]!r}"
            raise InputError(f"{path}:{number}: expected {expected}") from None
    return pairs


async def publish_labels(
    settings: Settings, pairs: Sequence[PatientLabel], *, amends: bool = False
) -> int:
    """Publish all labels, or none if one of them cannot be used; return how many.

    If they amend, they replace any earlier labels.
    """
    at, values = wall(), []
    names = Pseudonyms(settings).ids([pair.id for pair in pairs])
    for pair, name in zip(pairs, names, strict=True):
        try:
            value = label_value(name, pair.label, at, settings.labels, amends=amends)
            values.append(value)
        except PatientError as error:
            raise InputError(f"{pair.where}: {error}") from None
    topic = Topics.of(settings).labels
    async with Sender(settings, [topic]) as sender:
        await sender.send_many([name.encode() for name in names], {topic: values}, at)
        await sender.flush()
    return len(values)
