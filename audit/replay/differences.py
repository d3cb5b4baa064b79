"""Why some diagnoses of an unchanged replay differ from the live ones: one cause per diagnosis."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from audit.recording.columns import firsts
from audit.recording.partition_logs import PartitionLogs
from audit.replay.player import RestsOn
from learners.arrays.types import MISSING, Bools, Ints


class Cause(StrEnum):
    """What a diagnosis that differs rests on that was otherwise live; the first that fits."""

    SETTINGS = "settings"
    HEARD = "heard"
    REMOVED = "removed"
    PARTITIONS = "partitions"
    LABELS = "labels"
    WAITING = "waiting"
    CORRECTED = "corrected"
    ARITHMETIC = "arithmetic"


IN_WORDS = {
    Cause.SETTINGS: "another fusion mode had made them: the settings have changed since",
    Cause.HEARD: "live, other learners were heard in time",
    Cause.REMOVED: "retention has removed labels that had been learned",
    Cause.PARTITIONS: "live, partitions heard of each other's labels at other times",
    Cause.LABELS: "live, other labels had been learned by then",
    Cause.WAITING: "live, another number of diagnoses waited for their labels: some had expired",
    Cause.CORRECTED: "labels had been corrected, and which decisions came before is not on record",
    Cause.ARITHMETIC: "from the same labels; another processor or numpy may round otherwise",
}


@dataclass(frozen=True, slots=True)
class Differences:
    """Where and why diagnoses differ.

    compared   diagnoses that were made both times
    differing  the numbers of patients among these whose diagnosis differs, ascending
    causes     how many, by cause; none are left out
    only_live  diagnoses that the replay did not make: what they rest on is not on record any more
    """

    compared: int
    differing: Ints
    causes: dict[Cause, int]
    only_live: int

    @property
    def agreement(self) -> float | None:
        """The share of diagnoses that came out as they did live."""
        return 1.0 - len(self.differing) / self.compared if self.compared else None

    def figures(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        return {
            "differing": len(self.differing),
            "only_live": self.only_live,
            "causes": self.causes,
        }

    def sentences(self) -> list[str]:
        """Say where they differ, and why, by cause."""
        sentences = []
        if len(self.differing):
            first = f"the first that of patient {int(self.differing[0]) + 1:,}"
            sentences.append(
                f"{len(self.differing):,} of {self.compared:,} diagnoses differ, {first}:"
            )
            sentences += [f"  {count:,}: {IN_WORDS[cause]}" for cause, count in self.causes.items()]
        if self.only_live:
            sentences.append(
                f"{self.only_live:,} diagnoses cannot be replayed: their features are gone"
            )
        return sentences


def differences(
    recorded: Sequence[PartitionLogs], live: Ints, replayed: Ints, rested: RestsOn
) -> Differences:
    """Compare live diagnoses with replayed ones, by patient, and find the causes."""
    comparable = (live != MISSING) & (replayed != MISSING)
    differing = np.flatnonzero(comparable & (live != replayed))
    causes: dict[Cause, int] = {}
    left = differing
    for cause, holds in _causes(recorded, _live_rests_on(recorded), rested).items():
        of = holds[left]
        if of.any():
            causes[cause] = int(of.sum())
        left = left[~of]
    only_live = int(((live != MISSING) & (replayed == MISSING)).sum())
    return Differences(int(comparable.sum()), differing, causes, only_live)


def _causes(
    recorded: Sequence[PartitionLogs], live: tuple[RestsOn, Bools], rested: RestsOn
) -> dict[Cause, Bools]:
    """Return, for each cause in order, which patients' diagnoses it can explain."""
    was, of_mode = live
    every = np.ones(len(of_mode), np.bool_)
    heard = (was.heard != rested.heard).any(axis=1)
    informed = was.heard & (was.taught != MISSING)
    labels = (was.learned != rested.learned) | (informed & (was.taught != rested.taught)).any(
        axis=1
    )
    stated = was.basis[:, 2] != MISSING
    corrected = any(
        log.columns["amends"].any() for logs in recorded for log in logs.feedback.values()
    )
    return {
        Cause.SETTINGS: ~of_mode,
        Cause.HEARD: heard,
        Cause.REMOVED: every & any(logs.vouched_from is not None for logs in recorded),
        Cause.PARTITIONS: every & (len(recorded) > 1),
        Cause.LABELS: labels,
        Cause.WAITING: stated & (was.basis[:, 2] != rested.basis[:, 2]),
        Cause.CORRECTED: every & corrected,
        Cause.ARITHMETIC: every,
    }


def _live_rests_on(recorded: Sequence[PartitionLogs]) -> tuple[RestsOn, Bools]:
    """Return what live diagnoses rest on, and which were made by the mode of the settings."""
    parts = [_of_partition(logs) for logs in recorded]
    return RestsOn.joined([rests for rests, _ in parts]), np.concatenate([by for _, by in parts])


def _of_partition(logs: PartitionLogs) -> tuple[RestsOn, Bools]:
    size, M = len(logs.names.ids), len(logs.settings.learners)
    rests = RestsOn.of(size, M)
    of_mode = np.ones(size, np.bool_)
    diagnosed, predicted = logs.diagnoses.columns, logs.predictions.columns
    first = firsts(diagnosed["id"], size)
    ids = np.flatnonzero(first >= 0)
    at = first[ids]
    rests.learned[ids] = diagnosed["learned"][at]
    rests.heard[ids] = diagnosed["predicted"][at] != MISSING
    rests.basis[ids] = diagnosed["basis"][at]
    of_mode[ids] = diagnosed["of_mode"][at]
    # Only a learner's first prediction for a patient counts; in reverse order, it is written last.
    rests.taught[predicted["id"][::-1], predicted["learner"][::-1]] = predicted["learned"][::-1]
    return rests, of_mode
