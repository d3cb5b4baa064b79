"""`hb init`: write a settings file to start from."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.features import reading
from cli.output import JsonOption, err, out, print_json
from settings.errors import InputError

if TYPE_CHECKING:
    from settings.proposing.from_csv import CsvProposal
    from settings.proposing.proposal import Proposal

LabelOption = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The column with the labels.  [default: guessed]"),
]
PositiveOption = Annotated[
    str | None,
    typer.Option(metavar="VALUE", help="The label that must not be missed.  [default: guessed]"),
]
IdOption = Annotated[
    str | None,
    typer.Option("--id", metavar="COLUMN", help="The column with the ids.  [default: guessed]"),
]
SubjectOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column that names the person, if people come more than once."
        "  [default: the id column, if ids repeat]",
    ),
]
LearnerOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=COLUMN,…",
        help="A learner and its features; repeat it for each learner.  [default: suggested]",
    ),
]
LearnersOption = Annotated[
    int | None,
    typer.Option(min=1, help="How many learners share the features.  [default: suggested]"),
]

_EXISTS = "{file} already exists; --force replaces it, --out FILE writes another one"


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Settings")(init)


def init(
    *,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Your CSV file; its header names the features."),
    ] = None,
    dataset: Annotated[
        Literal["wdbc"] | None,
        typer.Option(help="Breast cancer (Wisconsin), 30 features.  [default if there is no FILE]"),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The same as FILE."),
    ] = None,
    label: LabelOption = None,
    positive: PositiveOption = None,
    id_column: IdOption = None,
    subject: SubjectOption = None,
    learner: LearnerOption = None,
    learners: LearnersOption = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Decides which learner sees which of WDBC's features.")
    ] = 0,
    paper: Annotated[
        bool, typer.Option("--paper", help="Use the settings of the paper's experiments.")
    ] = False,
    scale: Annotated[
        Literal["online", "minmax", "zlog", "quantile"] | None,
        typer.Option(
            metavar="SCALE",
            help="How numbers are scaled: learned `online`, or fitted to FILE (`minmax`, `zlog`,"
            " `quantile`).  [default: online; zlog with --paper]",
            show_default=False,
        ),
    ] = None,
    bound: Annotated[
        bool,
        typer.Option(
            "--bound", help="Use a fusion mode with a regret bound; it makes a few more errors."
        ),
    ] = False,
    output: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The file to write.")
    ] = Path("ensemble.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    json: JsonOption = False,
) -> None:
    """Write a commented settings file for a CSV file of yours, or for the WDBC data.

    It works as written, and comments explain each choice. The command first reports on the data,
    and tells you what it had to guess. Scales are learned online by default, so nothing is known
    about the data beforehand.

    Examples: `hb init patients.csv --label outcome --positive ill`, or with named learners
    `hb init patients.csv --learner imaging=radius,texture --learner history=age,site`.
    """
    from settings.proposing.from_csv import Wishes, propose
    from settings.proposing.refit import replace_text

    if output.exists() and not force:
        raise InputError(_EXISTS.format(file=output))
    if paper and bound:
        raise typer.BadParameter(
            "--paper and --bound cannot be combined: the paper's fusion already has a bound"
        )
    if file is not None and csv is not None:
        raise typer.BadParameter("give the file once: FILE or --csv FILE")
    if learner and learners:
        raise typer.BadParameter("--learner and --learners cannot be combined")
    data, csv_proposal = file or csv, None
    if data is None:
        _refuse_csv_options(
            label=label,
            positive=positive,
            id=id_column,
            subject=subject,
            learner=learner,
            scale=scale,
        )
        proposal = for_wdbc(learners, seed, paper)
    elif dataset is not None:
        raise typer.BadParameter("--dataset and a FILE cannot be combined")
    else:
        scaled = scale or ("zlog" if paper else "online")
        wishes = Wishes(label, positive, id_column, learners, learner or (), scaled, subject)
        with reading(data.stat().st_size if data.exists() else 0, f"reading {data.name}") as step:
            csv_proposal = propose(data, wishes, step)
        proposal = replace(csv_proposal.proposal, paper=paper)
    text = checked_text(replace(proposal, bound=bound), output)
    replace_text(output, text)
    _report(proposal, output, json, csv_proposal)


def checked_text(proposal: "Proposal", file: Path) -> str:
    """Return the proposed text after reading it back: what is written must be valid."""
    from settings.loading import source_of, validate
    from settings.proposing.proposal import proposed_text

    text = proposed_text(proposal)
    validate(source_of(text, file))
    return text


def _refuse_csv_options(**options: str | Sequence[str] | None) -> None:
    for name, value in options.items():
        if value:
            raise typer.BadParameter(f"--{name} needs a FILE")


def for_wdbc(learners: int | None, seed: int, paper: bool) -> "Proposal":
    """Deal the 30 features out at random, as the paper does; scales are fitted to all 569 rows."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    from settings.proposing.fitting import moments
    from settings.proposing.proposal import Proposal

    data = load_breast_cancer()
    order = np.random.default_rng(seed).permutation(len(data.feature_names))
    features = [
        {"name": str(data.feature_names[j]), "scale": "zlog", **moments(data.data[:, j])}
        for j in order
    ]
    return Proposal(
        name="wdbc",
        labels=("benign", "malignant"),
        positive="malignant",
        learners=_dealt(features, learners),
        origin="the WDBC data",
        label_column="diagnosis",
        paper=paper,
    )


def _dealt(features: Sequence[Any], learners: int | None) -> dict[str, list[Any]]:
    from settings.proposing.proposal import split

    if len(features) < (learners or 1):
        raise InputError(
            f"{len(features)} features are too few for {learners or 1} learners: each needs one"
        )
    return split(features, learners or min(3, len(features)))


def _report(
    proposal: "Proposal", file: Path, json: bool, csv_proposal: "CsvProposal | None" = None
) -> None:
    if json:
        learners = {n: [f["name"] for f in fs] for n, fs in proposal.learners.items()}
        report: dict[str, Any] = {"file": str(file), "name": proposal.name, "learners": learners}
        report |= {"id": proposal.id_column, "label": proposal.label_column}
        report |= {"left_out": dict(proposal.left_out)}
        if csv_proposal is not None:
            report |= {
                "data": csv_proposal.report.figures(),
                "warnings": list(csv_proposal.report.warnings),
            }
            report |= {"guessed": csv_proposal.guessed, "split": csv_proposal.reason}
        print_json(report)
        return
    if csv_proposal is not None:
        show_data(csv_proposal)
    counts = ", ".join(f"{n} {len(fs)}" for n, fs in proposal.learners.items())
    ids = f"ids in column {proposal.id_column}" if proposal.id_column else "ids will be generated"
    out.print(
        f"[green]wrote {file}[/green]: ensemble {proposal.name}, features: {counts}; {ids}",
        soft_wrap=True,
    )
    out.print("Read it and change what you like; `hb settings check` validates it.")


def show_data(proposal: "CsvProposal") -> None:
    """Print the report on the data, what was guessed, and why features are split as they are."""
    for line in proposal.report.sentences():
        warning = line in proposal.report.warnings
        style = "yellow" if warning or line.startswith("left out") else None
        err.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
    for option, value in proposal.guessed.items():
        err.print(f"guessed: --{option} {value}", style="yellow", markup=False, soft_wrap=True)
    named = "; ".join(
        f"{name}: {', '.join(str(f['name']) for f in features)}"
        for name, features in proposal.proposal.learners.items()
    )
    err.print(
        f"learners ({proposal.reason}): {named}", markup=False, highlight=False, soft_wrap=True
    )
