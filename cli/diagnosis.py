"""`hb diagnosis ID`: one patient, how sure the answer is, each opinion, and the label."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from cli.output import JsonOption, out, print_json
from cli.settings import SetOption, SettingsOption, load
from settings.errors import InputError

if TYPE_CHECKING:
    from schemas.records import Diagnosis, Opinion
    from settings.model import Settings


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Patients")(diagnosis)


def diagnosis(
    id: Annotated[str, typer.Argument(metavar="ID", help="The patient.")],  # noqa: A002 - the record's own word
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Show the diagnosis of one patient, what it rests on, and the label once it is known."""
    import msgspec

    found = asyncio.run(_find(load(settings, set_), id))
    if found.diagnosis is None:
        raise InputError("no diagnosis of this patient is on the topic: none yet, or none any more")
    if json:
        print_json({"diagnosis": msgspec.to_builtins(found.diagnosis), "label": found.label})
        return
    for line in described(found.diagnosis, found.label):
        out.print(line, markup=False, highlight=False, soft_wrap=True)


class Found(NamedTuple):
    """What the topics hold of a patient."""

    diagnosis: "Diagnosis | None" = None
    label: str | None = None


async def _find(settings: "Settings", name: str) -> Found:
    """Return the first diagnosis and the first label of a patient."""
    from agents.clients.topic_reader import TopicReader
    from schemas.errors import RecordError
    from schemas.reading import Reader
    from schemas.records import Diagnosis, Label
    from streams.kafka.topics import Topics

    topics, key = Topics.of(settings), name.encode()
    readers: dict[str, Reader[Any]] = {
        topics.diagnoses: Reader(Diagnosis),
        topics.labels: Reader(Label, known={"label": settings.labels}),
    }
    first: dict[str, Any] = {}
    async with TopicReader(settings, readers, "start") as reader:
        async for records in reader.present():
            for record in records:
                if record.key == key and record.topic not in first:
                    try:
                        first[record.topic] = readers[record.topic].one(record.value)
                    except RecordError:  # which is among the dead letters
                        continue
    label = first.get(topics.labels)
    return Found(first.get(topics.diagnoses), None if label is None else label.label)


def described(made: "Diagnosis", label: str | None) -> Iterator[str]:
    """Return a diagnosis in sentences."""
    from schemas.records import REFER

    if made.answer == REFER:
        left = ", ".join(made.cannot_exclude) or "no label fits"
        yield f"refer; cannot be excluded: {left} (best guess: {made.label})"
    else:
        yield f"answer: {made.label}"
    if made.chance is not None:
        yield "chance: " + ", ".join(f"{name} {share:.1%}" for name, share in made.chance.items())
    record = made.track_record
    if record is not None and record.cases:
        yield (
            f"track record: of {record.cases:,} diagnosed like this before,"
            f" {record.right / record.cases:.0%} were right"
            f" ({100 * record.low:.0f} to {100 * record.high:.0f} %)"
        )
    if made.why:
        yield f"to know: {', '.join(why.replace('_', ' ') for why in made.why)}"
    for name, opinion in made.learners.items():
        yield f"  {name}: {_opinion(opinion)}, weight {made.weights.get(name, 0.0):.2f}"
    if made.missing:
        yield f"  missing: {', '.join(made.missing)}"
    yield f"label: {'not known yet' if label is None else label}"


def _opinion(opinion: "Opinion") -> str:
    if opinion.label is None:
        return "no opinion"
    if opinion.accuracy is None or not opinion.trials:
        return f"{opinion.label} by rule {opinion.rule}, new in this cube"
    return f"{opinion.label} by rule {opinion.rule}, right {opinion.accuracy:.0%} in this cube"
