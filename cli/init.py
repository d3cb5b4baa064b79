"""`hb init`: write a settings file to start from."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.features import reading
from cli.output import JsonOption, err, out, print_json
from settings.errors import InputError

if TYPE_CHECKING:
    from settings.proposing.proposal import Proposal

_EXISTS = "{file} exists already; --force replaces it, --out writes another"


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Settings")(init)


def init(
    *,
    dataset: Annotated[
        Literal["wdbc"] | None,
        typer.Option(help="Breast cancer (Wisconsin), 30 features.  [default, without --csv]"),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A CSV file of your own; its header names the features."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With --csv: the column of the labels.")
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(metavar="VALUE", help="With --csv: the label that must not be missed."),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="COLUMN", help="With --csv: the column of ids.  [default: guessed]"
        ),
    ] = None,
    learners: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many learners share the features.  [default: 3, or one per feature]"
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Decides which learner gets which of WDBC's features.")
    ] = 0,
    paper: Annotated[
        bool, typer.Option("--paper", help="The setting of the paper's experiments.")
    ] = False,
    bound: Annotated[
        bool,
        typer.Option(
            "--bound", help="A fusion mode with a regret bound, at the cost of some errors."
        ),
    ] = False,
    output: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The file to write.")
    ] = Path("ensemble.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    json: JsonOption = False,
) -> None:
    """Write a settings file with comments, for the WDBC data or for a CSV file of your own.

    It is sound as it is, its features are fitted, and each choice is explained beside it.
    """
    from settings.proposing.refit import replace_text

    if output.exists() and not force:
        raise InputError(_EXISTS.format(file=output))
    if paper and bound:
        raise typer.BadParameter(
            "--paper and --bound cannot be combined: the paper's fusion has a bound"
        )
    if csv is None:
        _refuse_csv_options(label=label, positive=positive, id=id_column)
        proposal = for_wdbc(learners, seed, paper)
    elif dataset is not None:
        raise typer.BadParameter("--dataset and --csv cannot be combined")
    else:
        proposal = _for_csv(
            csv,
            label=label,
            positive=positive,
            id_column=id_column,
            learners=learners,
            paper=paper,
        )
    text = checked_text(replace(proposal, bound=bound), output)
    replace_text(output, text)
    _report(proposal, output, json)


def checked_text(proposal: "Proposal", file: Path) -> str:
    """Return the proposed text after reading it back: what is written must be valid."""
    from settings.loading import source_of, validate
    from settings.proposing.proposal import proposed_text

    text = proposed_text(proposal)
    validate(source_of(text, file))
    return text


def _refuse_csv_options(**given: str | None) -> None:
    for name, value in given.items():
        if value is not None:
            raise typer.BadParameter(f"--{name} needs --csv")


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


def _for_csv(
    file: Path,
    *,
    label: str | None,
    positive: str | None,
    id_column: str | None,
    learners: int | None,
    paper: bool,
) -> "Proposal":
    from settings.proposing.column_profile import profile
    from settings.proposing.csv_file import CsvFile
    from settings.proposing.proposal import Proposal
    from settings.render import inline

    data = CsvFile(file)
    if label is None:
        raise InputError(f"--label must name the column of the labels; {_columns(data.header)}")
    with reading(data.size, f"reading {file.name}") as advance:
        found = profile(data, label, id_column=id_column, advance=advance)
    if positive not in found.labels:
        raise InputError(f"--positive must be one of the {len(found.labels)} values of {label!r}")
    return Proposal(
        name=_name_for(file),
        labels=found.labels,
        positive=str(positive),
        learners=_dealt(found.features, learners),
        origin=inline(file.name),
        id_column=found.id,
        label_column=label,
        left_out=found.left_out,
        paper=paper,
    )


def _columns(header: Sequence[str]) -> str:
    return f"the file has: {', '.join(header)}"


def _dealt(features: Sequence[Any], learners: int | None) -> dict[str, list[Any]]:
    from settings.proposing.proposal import split

    if len(features) < (learners or 1):
        raise InputError(f"there are {len(features)} features for {learners or 1} learners")
    return split(features, learners or min(3, len(features)))


def _name_for(file: Path) -> str:
    """Make a legal name from a file's.

    >>> _name_for(Path("My Patients 2.csv")), _name_for(Path("2024.csv"))
    ('my-patients-2', 'ensemble-2024')
    """
    name = re.sub(r"[^a-z0-9_]+", "-", file.stem.lower()).strip("-_")
    return (name if re.match(r"[a-z]", name) else f"ensemble-{name}".rstrip("-"))[:40]


def _report(proposal: "Proposal", file: Path, json: bool) -> None:
    if json:
        learners = {n: [f["name"] for f in fs] for n, fs in proposal.learners.items()}
        report: dict[str, Any] = {"file": str(file), "name": proposal.name, "learners": learners}
        report |= {"id": proposal.id_column, "label": proposal.label_column}
        print_json(report | {"left_out": dict(proposal.left_out)})
        return
    for column, reason in proposal.left_out.items():
        err.print(f"left out: {column}: {reason}", style="yellow", markup=False, soft_wrap=True)
    counts = ", ".join(f"{n} {len(fs)}" for n, fs in proposal.learners.items())
    ids = f"ids in column {proposal.id_column}" if proposal.id_column else "ids will be generated"
    out.print(
        f"[green]wrote {file}[/green]: ensemble {proposal.name}, features: {counts}; {ids}",
        soft_wrap=True,
    )
    out.print("Read it and change what you like; `hb settings check` validates it.")
