"""What an audit found: counts of what was compared, and every difference; no patient's data.

lost        something that should have followed from a record did not
double      something came more often than it should
differing   a count, a state or a field is not what it should be according to the topics
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from streams.engine.tasks.task import describe


class Kind(StrEnum):
    """How the topics and the state differ."""

    LOST = "lost"
    DOUBLE = "double"
    DIFFERING = "differing"


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of difference in one place, and how often it occurred there."""

    kind: Kind
    what: str
    where: str
    times: int


@dataclass(slots=True)
class TableCheck:
    """A table of the live state compared with the recomputed one.

    values     numbers (or entries) compared
    differing  how many of them differ
    note       why it could not be compared, or only in part; empty if it was compared in full
    """

    values: int = 0
    differing: int = 0
    note: str = ""


@dataclass(slots=True)
class Findings:
    """Everything found so far."""

    counts: Counter[str] = field(default_factory=Counter)
    differences: Counter[tuple[Kind, str, str]] = field(default_factory=Counter)
    tables: dict[str, TableCheck] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    def lost(self, subject: str, where: str, times: Any) -> None:
        """Note something lost; `times` is a number, or an array of numbers or marks to sum."""
        self._add(Kind.LOST, subject, where, times)

    def double(self, subject: str, where: str, times: Any) -> None:
        """Note something doubled."""
        self._add(Kind.DOUBLE, subject, where, times)

    def differing(self, subject: str, where: str, times: Any) -> None:
        """Note something that differs."""
        self._add(Kind.DIFFERING, subject, where, times)

    def _add(self, kind: Kind, subject: str, where: str, times: Any) -> None:
        number = int(np.sum(times))
        if number:
            self.differences[kind, subject, where] += number

    def count(self, name: str, number: Any) -> None:
        """Count what was seen."""
        self.counts[name] += int(number)

    def note(self, text: str) -> None:
        """Say what the audit does not cover."""
        self.notes[text] = None

    @contextmanager
    def reporting(self, subject: str, where: str) -> Iterator[None]:
        """Turn whatever a part of the audit fails on into a finding; it may hold no value."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # an audit reports, whatever it meets
            self.differing(f"{subject}: cannot be recomputed ({describe(error)})", where, 1)

    def table(self, name: str, where: str, *, values: int, differing: int, note: str = "") -> None:
        """Note how a table compares."""
        check = self.tables.setdefault(name, TableCheck())
        check.values += values
        check.differing += differing
        check.note = check.note or note
        self._add(Kind.DIFFERING, f"values of table {name}", where, differing)

    def merge(self, other: "Findings") -> None:
        """Take in what was found in another partition."""
        self.counts.update(other.counts)
        self.differences.update(other.differences)
        self.notes.update(other.notes)
        for name, check in other.tables.items():
            own = self.tables.setdefault(name, TableCheck())
            own.values += check.values
            own.differing += check.differing
            own.note = own.note or check.note

    @property
    def clean(self) -> bool:
        """Whether nothing is lost, double or differing."""
        return not self.differences

    def total(self, kind: Kind) -> int:
        """Return how many differences of one kind were found."""
        return sum(times for (k, _, _), times in self.differences.items() if k is kind)

    def list(self) -> list[Finding]:
        """Return all that was found."""
        return [Finding(*key, times) for key, times in sorted(self.differences.items())]
