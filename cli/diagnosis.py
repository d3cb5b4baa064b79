"""`hb diagnosis ID`: one patient, how sure the answer is, opinions, reasons, and the label."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import JsonOption, out, print_json
from cli.settings import SetOption, SettingsOption, load
from learners.scores.wording import because, chance, interval, percent
from settings.errors import InputError

if TYPE_CHECKING:
    from agents.clients.one_patient import Patient
    from schemas.records import Diagnosis, Opinion, Reasons


_VISITS = 10


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Patients")(diagnosis)


def diagnosis(
    id: Annotated[str, typer.Argument(metavar="ID", help="The patient's id.")],  # noqa: A002 - the record's own word
    settings: SettingsOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Show one patient's newest diagnosis, what it rests on, and the label once it is known.

    Where patients are published with a subject, it also lists the visits of the same person.

    For learners that publish their reasons (learners.NAME.reasons), it also shows how much each
    feature moved the log-odds, largest first, if this user may read them.

    Example: `hb diagnosis a17`.
    """
    import msgspec

    from agents.clients.one_patient import find_patient
    from agents.clients.pseudonyms import Pseudonyms

    loaded = load(settings, set_)
    patient = asyncio.run(find_patient(loaded, Pseudonyms(loaded).id(id)))
    if patient.diagnosis is None:
        raise InputError(
            "the topic has no diagnosis of this patient: there is none yet, or it is no longer kept"
        )
    if json:
        print_json(msgspec.to_builtins(patient))
        return
    for line in described(patient):
        out.print(line, markup=False, highlight=False, soft_wrap=True)


def described(patient: "Patient") -> Iterator[str]:
    """Return a diagnosis in sentences."""
    from schemas.records import REFER

    answer = patient.diagnosis
    if answer is None:
        return
    if answer.answer == REFER:
        left = ", ".join(answer.cannot_exclude) or "no label fits"
        yield f"refer; cannot be excluded: {left} (best guess: {answer.label})"
    else:
        yield f"answer: {answer.label}"
    if answer.chance is not None:
        yield "chance: " + ", ".join(f"{n} {chance(share)}" for n, share in answer.chance.items())
    record = answer.track_record
    if record is not None and record.cases:
        yield (
            f"track record: of {record.cases:,} diagnosed like this before, {record.right:,} were"
            f" right ({interval(record.low, record.high)})"
        )
    if answer.why:
        yield f"note: {' '.join(because(answer.why))}"
    for name, opinion in answer.learners.items():
        weight = f", weight {answer.weights[name]:.2f}" if name in answer.weights else ""
        yield f"  {name}: {_opinion(opinion)}{weight}"
        if name in patient.reasons:
            yield from _because(patient.reasons[name])
    if answer.missing:
        yield f"  missing: {', '.join(answer.missing)}"
    yield from _circumstances(answer, patient)
    if patient.denied:
        yield f"not shown, because this user may not read it: {', '.join(patient.denied)}"


def _circumstances(answer: "Diagnosis", patient: "Patient") -> Iterator[str]:
    """Say when it was made, what the label is, and whose visit it was."""
    after = "" if answer.learned is None else f", after {answer.learned:,} labels"
    yield f"made: {_time(answer.at)}{after}"
    yield f"label: {_label(patient)}"
    if answer.subject is not None:
        yield _visits(answer.subject, patient.visits)


def _label(patient: "Patient") -> str:
    if patient.labelled is None:
        return "not known yet"
    word = "withdrawn" if patient.label is None else f"{patient.label}, given"
    return f"{word} {_time(patient.labelled)}"


def _visits(subject: str, visits: "Sequence[Diagnosis]") -> str:
    """Say whose visit it is, and which others there are among the latest diagnoses."""
    if not visits:
        return f"person {subject}"
    sentences = [
        f"{visit.id} ({_time(visit.at)}, {visit.answer or visit.label})" for visit in visits
    ]
    counted = f"{len(sentences)} visit{'' if len(sentences) == 1 else 's'} of late"
    more = "; the latest of them" if len(sentences) > _VISITS else ""
    return f"person {subject}, {counted}{more}: {', '.join(sentences[-_VISITS:])}"


def _time(at: int) -> str:
    when = datetime.fromtimestamp(at / 1000).astimezone()
    return f"{when.day} {when:%b %Y, %H:%M:%S}"


def _because(why: "Reasons") -> Iterator[str]:
    """Return a learner's reasons, the strongest first."""
    yield f"    log-odds {_odds(why.log_odds)}, of which"
    for feature, part in sorted(why.parts.items(), key=lambda item: -max(map(abs, item[1]))):
        yield f"      {feature} {_odds(part)}"
    yield f"      the rest {_odds(why.rest)}"


def _odds(odds: Sequence[float]) -> str:
    return ", ".join(f"{number:+.2f}" for number in odds)


def _opinion(opinion: "Opinion") -> str:
    if opinion.label is None:
        return "no opinion"
    sentence = f"{opinion.label} by rule {opinion.rule}"
    if opinion.accuracy is None or not opinion.trials:
        return f"{sentence}, not tried on such patients yet"
    return f"{sentence}, right {percent(opinion.accuracy)} on such patients"
