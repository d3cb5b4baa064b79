"""Fusion rules as the experts of another one: their names, and their tables beside its own."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from learners.arrays.tables import CellTable, Rows
from learners.errors import LearnerError
from learners.fusion.base import Fusion


class FusionOfRules(Fusion):
    """A fusion rule whose experts are fusion rules and, if wanted, the LLs.

    members         name -> fusion rule
    with_learners   let the LLs be experts as well
    own             what its own tables are called, before the members'
    """

    own_experts = True
    own: str

    def __init__(self, members: Mapping[str, Fusion], *, with_learners: bool, prefer: int) -> None:
        sizes = {(member.learners, member.classes) for member in members.values()}
        if len(sizes) != 1:
            raise LearnerError("a committee needs members, all for the same learners and labels")
        super().__init__(*sizes.pop(), prefer=prefer)
        self.members = dict(members)
        self.with_learners = with_learners
        self.expert_count = len(members) + self.learners * with_learners

    @abstractmethod
    def _own_tables(self) -> Mapping[str, CellTable]:
        """Return its own tables by their full names."""

    def _pooled_own(self, name: str, rows: Rows) -> Rows:
        """Pool one of its own tables: they add up."""
        return super().pooled(name, rows)

    def tables(self) -> Mapping[str, CellTable]:
        """Return its own tables, and each member's as `member.table`."""
        return {**self._own_tables()} | {
            f"{name}.{part}": table
            for name, member in self.members.items()
            for part, table in member.tables().items()
        }

    def pooled(self, name: str, rows: Rows, /) -> Rows:
        """Pool a table as its owner does."""
        member, _, part = name.partition(".")
        if member == self.own:
            return self._pooled_own(name, rows)
        return self.members[member].pooled(part, rows)

    def experts(self, learners: Sequence[str]) -> list[str]:
        """Return the members' names, then those of the LLs if they are experts."""
        return [*self.members, *(learners if self.with_learners else ())]
