"""AH, WM, CH and Active EL, one instance at a time, straight from the paper's pseudocode.

Plain Python on plain numbers, to compare the vectorised code with. `draw` and `idle_draw` are the
numbers in [0, 1) by which an LL is drawn: from q, and when every LL explores. The product draws
from weights rounded to whole parts of 10^-9; so does this, which otherwise keeps to the letter.
"""

from math import exp, log, sqrt

PARTS = 10**9


class PaperHedge:
    """AH (and WM, by `vote`) in each cube: with one cube they are AH and WM, with several CH."""

    def __init__(self, learners: int, vote: bool) -> None:
        self.M = learners
        self.vote = vote
        self.N: dict[int, int] = {}
        self.L: dict[int, list[int]] = {}

    def predict(
        self, p: int, predictions: list[int | None], draw: float
    ) -> tuple[int | None, list[int]]:
        """Return the final prediction, and q in parts."""
        # N_p is incremented before it is used; without this label it stays as it was.
        n = self.N.get(p, 0) + 1
        losses = self.L.get(p, [0] * self.M)
        eta = sqrt(log(self.M) / n)
        present = [i for i in range(self.M) if predictions[i] is not None]
        if not present:
            return None, [0] * self.M
        # Dividing all terms of q by that of the best LL keeps them from vanishing together.
        best = min(losses[i] for i in present)
        terms = {i: exp(-eta * (losses[i] - best)) for i in present}
        total = sum(terms.values())
        rough = [round(terms[i] / total * PARTS) if i in terms else 0 for i in range(self.M)]
        q = complete(rough)
        if self.vote:
            return majority(predictions, rough), q
        return predictions[follow(q, draw)], q

    def update(self, p: int, predictions: list[int | None], label: int) -> None:
        """Observe the true label."""
        self.N[p] = self.N.get(p, 0) + 1
        losses = self.L.setdefault(p, [0] * self.M)
        for i, prediction in enumerate(predictions):
            if prediction is not None and prediction != label:
                losses[i] += 1


class LateHedge(PaperHedge):
    """The same with late labels and silent LLs as `learners.fusion.late_labels` has them.

    Every decision knows by name the settled ones whose losses it has seen, and blind pairs are
    found by looking at each pair.
    """

    def __init__(self, learners: int, vote: bool) -> None:
        super().__init__(learners, vote)
        self.made: list[tuple[int, set[int], list[int], list[int | None]]] = []
        self.settled: dict[int, set[int]] = {}
        self.silent: dict[int, list[int]] = {}

    def predict(
        self, p: int, predictions: list[int | None], draw: float
    ) -> tuple[int | None, list[int]]:
        settled = set(self.settled.get(p, ()))
        blind = sum(
            left not in self.made[right][1] and right not in self.made[left][1]
            for left in settled
            for right in settled
            if left < right
        )
        pace = len(settled) + 1 + (blind + 1) // 2
        errors, silent = self.L.get(p, [0] * self.M), self.silent.get(p, [0] * self.M)
        losses = [error + loss / PARTS for error, loss in zip(errors, silent, strict=True)]
        present = [i for i in range(self.M) if predictions[i] is not None]
        q, label = [0] * self.M, None
        if present:
            best, eta = min(losses[i] for i in present), sqrt(log(self.M) / pace)
            terms = {i: exp(-eta * (losses[i] - best)) for i in present}
            total = sum(terms.values())
            rough = [round(terms[i] / total * PARTS) if i in terms else 0 for i in range(self.M)]
            q = complete(rough)
            label = majority(predictions, rough) if self.vote else predictions[follow(q, draw)]
        self.made.append((p, settled, q, predictions))
        return label, q

    def settle(self, number: int, label: int) -> None:
        """Observe the label of the decision made as number so and so."""
        p, _, q, predictions = self.made[number]
        self.update(p, predictions, label)
        own = sum(part for part, vote in zip(q, predictions, strict=True) if vote != label)
        silent = self.silent.setdefault(p, [0] * self.M)
        for i, prediction in enumerate(predictions):
            if prediction is None:
                silent[i] += own
        self.settled.setdefault(p, set()).add(number)


class PaperActive:
    """The active EL: A(t) holds the LLs that exploit; if it is empty, any LL will do."""

    def __init__(self, inner: PaperHedge) -> None:
        self.inner = inner

    def predict(
        self,
        p: int,
        predictions: list[int | None],
        exploring: list[bool],
        draw: float,
        idle_draw: float,
    ) -> tuple[int | None, list[int]]:
        exploiting = self._exploiting(predictions, exploring)
        present = [i for i, vote in enumerate(predictions) if vote is not None]
        if present and all(vote is None for vote in exploiting):
            share = round(PARTS / len(present))
            q = complete([share if i in present else 0 for i in range(len(predictions))])
            return predictions[follow(q, idle_draw)], q
        return self.inner.predict(p, exploiting, draw)

    def update(
        self, p: int, predictions: list[int | None], exploring: list[bool], label: int
    ) -> None:
        self.inner.update(p, self._exploiting(predictions, exploring), label)

    @staticmethod
    def _exploiting(predictions: list[int | None], exploring: list[bool]) -> list[int | None]:
        return [None if tries else vote for vote, tries in zip(predictions, exploring, strict=True)]


def complete(rough: list[int]) -> list[int]:
    """Let q sum to one: the first of the largest takes what rounding left."""
    largest = rough.index(max(rough))
    return [part + (PARTS - sum(rough)) * (i == largest) for i, part in enumerate(rough)]


def follow(q: list[int], draw: float) -> int:
    """Return the LL I(t) drawn from q."""
    point, reached = int(draw * PARTS), 0
    for i, part in enumerate(q):
        reached += part
        if point < reached:
            return i
    raise AssertionError("q does not sum to one")


def majority(predictions: list[int | None], q: list[int]) -> int:
    """Return argmax_y of the summed q_i with h_i = y; of equal ones the first label."""
    mass: dict[int, int] = {}
    for vote, part in zip(predictions, q, strict=True):
        if vote is not None:
            mass[vote] = mass.get(vote, 0) + part
    return min(mass, key=lambda y: (-mass[y], y))
