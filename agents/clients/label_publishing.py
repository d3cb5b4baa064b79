"""Labels from a command line or a file onto their topic."""

from collections.abc import Sequence
from pathlib import Path

import orjson

from agents.clients.sender import Sender
from agents.clients.splitting import PatientError, label_value
from settings.errors import InputError
from settings.model import Settings
from settings.proposing.csv_file import CsvFile
from streams.clock import wall
from streams.kafka.topics import Topics

Pair = tuple[str, str, str]
"""Where a label was found, the patient's id, and the label."""


def pairs_of(arguments: Sequence[str]) -> list[Pair]:
    """Read `ID=LABEL` arguments; an id may hold equals signs, so the last one counts.

    >>> pairs_of(["a17=benign", "b=2=malignant"])
    [('argument 1', 'a17', 'benign'), ('argument 2', 'b=2', 'malignant')]
    """
    pairs = []
    for number, argument in enumerate(arguments, 1):
        name, equals, label = argument.rpartition("=")
        if not equals:
            raise InputError(f"argument {number}: expected ID=LABEL, such as a17=benign")
        pairs.append((f"argument {number}", name, label))
    return pairs


def pairs_in(path: Path, settings: Settings) -> list[Pair]:
    """Read the ids and labels of a CSV or JSONL file; other columns do not matter."""
    keys = settings.columns.id or "id", settings.columns.label or "label"
    if path.suffix.lower() in {".jsonl", ".ndjson", ".json"}:
        return _from_json(path, keys)
    return [
        (f"{path}:{line}", name.strip(), label.strip())
        for chunk in CsvFile(path).chunks(keys)
        for line, name, label in zip(
            chunk.lines, chunk.columns[keys[0]], chunk.columns[keys[1]], strict=True
        )
    ]


def _from_json(path: Path, keys: tuple[str, str]) -> list[Pair]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    pairs = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = orjson.loads(line)
            pairs.append((f"{path}:{number}", str(found[keys[0]]), str(found[keys[1]])))
        except (orjson.JSONDecodeError, KeyError, TypeError):
            expected = f"a JSON object with {keys[0]!r} and {keys[1]!r}"
            raise InputError(f"{path}:{number}: expected {expected}") from None
    return pairs


async def publish_labels(settings: Settings, pairs: Sequence[Pair]) -> int:
    """Publish all labels, or none if one of them cannot be used; return how many."""
    at, values = wall(), []
    for where, name, label in pairs:
        try:
            values.append(label_value(name, label, at, settings.labels))
        except PatientError as error:
            raise InputError(f"{where}: {error}") from None
    topic = Topics.of(settings).labels
    async with Sender(settings, [topic]) as sender:
        await sender.send_many([name.encode() for _, name, _ in pairs], {topic: values}, at)
        await sender.flush()
    return len(values)
