"""Settings proposed for a CSV file: what its columns are, where that is guessed, and a report."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from settings.errors import InputError
from settings.proposing.column_profile import profile
from settings.proposing.csv_file import CsvFile
from settings.proposing.data_report import DataReport, data_report
from settings.proposing.guessing import guess_label, guess_positive
from settings.proposing.proposal import Proposal
from settings.proposing.splits import named_split, suggested_split
from settings.render import inline
from settings.sections.features import Scale


@dataclass(frozen=True)
class Wishes:
    """What the user says about a file; the rest is guessed or suggested.

    named   `NAME=COLUMN,COLUMN` for each learner
    scale   how numbers are scaled: learned online, or fitted to the file
    """

    label: str | None = None
    positive: str | None = None
    id_column: str | None = None
    learners: int | None = None
    named: Sequence[str] = ()
    scale: Scale = "online"
    subject: str | None = None

    def split_options(self) -> list[str]:
        """Return the options that say how features are shared among learners."""
        named = [word for learner in self.named for word in ("--learner", learner)]
        return [*named, *(["--learners", str(self.learners)] if self.learners else [])]


@dataclass(frozen=True)
class CsvProposal:
    """A proposal for a file, the report on its data, why learners are split so, what is guessed.

    wishes     what the user asked for
    features   all that can be one, in the order of the file
    """

    proposal: Proposal
    report: DataReport
    reason: str
    guessed: dict[str, str]
    wishes: Wishes
    features: Sequence[Mapping[str, Any]]


def propose(
    file: Path, wishes: Wishes, advance: Callable[[int], None] = lambda _: None
) -> CsvProposal:
    """Read a file and propose settings for it."""
    data = CsvFile(file)
    guessed: dict[str, str] = {}
    label = wishes.label or guess_label(data)
    if label is None:
        raise InputError(
            f"--label must name the column of the labels; the file has: {', '.join(data.header)}"
        )
    if wishes.label is None:
        guessed["label"] = label
    columns = profile(
        data,
        label,
        id_column=wishes.id_column,
        subject=wishes.subject,
        scale=wishes.scale,
        advance=advance,
    )
    labels = list(columns.labels)
    positive = wishes.positive or guess_positive(labels, list(columns.labels.values()))
    if wishes.positive is None:
        guessed["positive"] = positive
    if positive not in labels:
        raise InputError(f"--positive must be one of the {len(labels)} values of {label!r}")
    if not columns.features:
        raise InputError(f"{file}: no column can be used as a feature")
    chosen = (
        named_split(columns.features, wishes.named)
        if wishes.named
        else suggested_split(columns.features, columns.sources, wishes.learners)
    )
    proposal = Proposal(
        name=name_for(file),
        labels=labels,
        positive=positive,
        learners=chosen.learners,
        origin=inline(file.name),
        id_column=columns.id,
        label_column=label,
        left_out=columns.left_out,
        subject_column=columns.subject,
    )
    report = data_report(data, columns)
    return CsvProposal(proposal, report, chosen.reason, guessed, wishes, columns.features)


def name_for(file: Path) -> str:
    """Make a legal name from a file's.

    >>> name_for(Path("My Patients 2.csv")), name_for(Path("2024.csv"))
    ('my-patients-2', 'ensemble-2024')
    """
    name = re.sub(r"[^a-z0-9_]+", "-", file.stem.lower()).strip("-_")
    return (name if re.match(r"[a-z]", name) else f"ensemble-{name}".rstrip("-"))[:40]
