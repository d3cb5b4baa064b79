"""Tries proposed settings on their file, beside baselines: what `hb evaluate` reports."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agents.clients.patient_files import CsvPatients
from audit.evaluation.cases import Cases, read_cases
from audit.evaluation.outcome import Outcome, labels_until_useful, lead, leads
from audit.evaluation.passes import Progress, ensemble_pass, logistic_pass, majority_pass
from settings.loading import source_of, validate
from settings.model import Settings
from settings.proposing.from_csv import CsvProposal
from settings.proposing.proposal import Proposal, proposed_text, split


@dataclass(frozen=True)
class Candidate:
    """Settings to try: what `hb init` would write with some options."""

    name: str
    options: tuple[str, ...]
    proposal: Proposal

    def settings(self) -> Settings:
        """Return the settings as they would be read."""
        return validate(source_of(proposed_text(self.proposal), Path("ensemble.toml")))


def candidates(csv: CsvProposal) -> Iterator[Candidate]:
    """Yield the proposed settings, and a few others that are worth a try."""
    proposal, own = csv.proposal, tuple(csv.wishes.split_options())
    yield Candidate("proposed", own, proposal)
    yield Candidate("regret bound", (*own, "--bound"), replace(proposal, bound=True))
    if len(proposal.learners) > 1:
        alone = replace(proposal, learners=_together(csv))
        yield Candidate("one learner", _one_learner(csv), alone)
    # Scales learned online for all, so that no pass knows the file beforehand.
    paper = (*own, "--paper", "--scale", "online")
    yield Candidate("paper", paper, replace(proposal, paper=True))


def _together(csv: CsvProposal) -> dict[str, list[Any]]:
    """Give one learner the features of all; if the user named learners, only those they have."""
    used = {name for part in csv.proposal.learners.values() for name in _names(part)}
    return split([feature for feature in csv.features if feature["name"] in used], 1)


def _one_learner(csv: CsvProposal) -> tuple[str, str]:
    """Return the option for one learner; one that leaves features out has to name the others."""
    ((name, part),) = _together(csv).items()
    if len(part) == len(csv.features):
        return "--learners", "1"
    return "--learner", f"{name}={','.join(_names(part))}"


def _names(features: Iterable[Mapping[str, Any]]) -> list[str]:
    return [str(feature["name"]) for feature in features]


@dataclass(frozen=True)
class Tried:
    """A candidate, or a baseline without options, and how its pass went."""

    name: str
    options: tuple[str, ...] | None
    outcome: Outcome
    useful: int | None

    def report(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return {"name": self.name, **self.outcome.rates(), "labels_until_useful": self.useful}


@dataclass(frozen=True)
class Evaluation:
    """Everything that was found about a file.

    tried      the candidates, the proposed one first
    used       how many patients were in the passes
    refused    rows that could not be used
    again      later visits of people seen before: learned from, but not scored
    """

    file: Path
    csv: CsvProposal
    tried: Sequence[Tried]
    logistic: Tried
    majority: Tried
    used: int
    refused: int
    delay: int
    again: int = 0

    @property
    def best(self) -> Tried:
        """The candidate with the lowest error; the proposed one, unless it is clearly worse.

        Clearly: by more than the standard error of the difference on the same patients.
        """
        proposed = self.tried[0]
        lowest = min(self.tried, key=lambda tried: tried.outcome.rates()["PER"] or 0.0)
        gain, error = lead(lowest.outcome, proposed.outcome)
        return lowest if gain > error else proposed

    @property
    def command(self) -> str:
        """The command that writes the best settings."""
        proposal, wishes = self.csv.proposal, self.csv.wishes
        words = ["hb", "init", str(self.file)]
        words += ["--label", str(proposal.label_column), "--positive", proposal.positive]
        words += ["--id", wishes.id_column] if wishes.id_column else []
        words += ["--subject", proposal.subject_column] if proposal.subject_column else []
        return shlex.join([*words, *(self.best.options or ())])

    def report(self) -> dict[str, Any]:
        """Return everything as plain data; `figures` are those of the proposed settings."""
        proposed = self.tried[0]
        data = self.csv.report.figures()
        return {
            "figures": {
                **{k: v for k, v in proposed.report().items() if k != "name"},
                **_beside("logistic", self.logistic.outcome),
                **_beside("majority", self.majority.outcome),
                **_ahead(proposed.outcome, self.logistic.outcome),
                "rows": data["rows"],
                "used": self.used,
                "refused": self.refused,
                "later_visits": self.again,
                "missing_values": data["missing_values"],
                "repeated_ids": data["repeated_ids"],
                "label_delay": self.delay,
            },
            "settings": [tried.report() for tried in self.tried],
            "baselines": [self.logistic.report(), self.majority.report()],
            "curves": {tried.name: tried.outcome.curve() for tried in self.passes()},
            "data": data,
            "warnings": list(self.csv.report.warnings),
            "guessed": self.csv.guessed,
            "best": self.best.name,
            "command": self.command,
        }

    def passes(self) -> list[Tried]:
        """Return all that was tried, baselines last."""
        return [*self.tried, self.logistic, self.majority]


def _beside(name: str, outcome: Outcome) -> dict[str, float | None]:
    """Return a baseline's figures under its name."""
    return {f"{name}_{rate}": share for rate, share in outcome.rates().items()}


def _ahead(proposed: Outcome, logistic: Outcome) -> dict[str, float | None]:
    """Return the lead over the logistic regression in each rate, negative if it is behind."""
    lead = leads(proposed, logistic)
    (gain, error), *_ = lead.values()
    named = {"lead_over_logistic": gain, "lead_se": error}
    for rate in ("FPR", "FNR"):
        named[f"{rate}_lead_over_logistic"], named[f"{rate}_lead_se"] = lead[rate]
    return named


def evaluate(
    file: Path, csv: CsvProposal, *, delay: int, limit: int | None, progress: Progress
) -> Evaluation:
    """Try the candidates on a file, each patient before its label."""
    first = next(candidates(csv)).settings()
    cases = read_cases(CsvPatients(file, first), first, limit)
    classes, positive = len(first.labels), first.labels.index(first.positive)

    def outcome(predicted: Any) -> Outcome:
        return Outcome(predicted, cases.judged, classes, positive)

    majority = outcome(majority_pass(cases, classes, delay))
    tried = []
    for candidate in candidates(csv):
        own = _as_seen_by(candidate.settings(), file, cases, limit)
        answers = outcome(
            ensemble_pass(own, candidate.settings(), delay, _named(candidate, progress))
        )
        useful = labels_until_useful(answers, majority)
        tried.append(Tried(candidate.name, candidate.options, answers, useful))
    logistic = outcome(logistic_pass(cases, classes, delay, progress))
    return Evaluation(
        file,
        csv,
        tried,
        Tried("logistic regression", None, logistic, labels_until_useful(logistic, majority)),
        Tried("majority class", None, majority, None),
        len(cases),
        cases.faults,
        delay,
        0 if cases.again is None else int(cases.again.sum()),
    )


def _as_seen_by(settings: Settings, file: Path, cases: Cases, limit: int | None) -> Cases:
    """Return the cases as other settings see them; the same if their learners are the same."""
    if list(settings.learners) == list(cases.rows):
        return cases
    return read_cases(CsvPatients(file, settings), settings, limit)


def _named(candidate: Candidate, progress: Progress) -> Progress:
    return lambda _, count, total: progress(candidate.name, count, total)
