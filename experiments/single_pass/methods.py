"""Our methods in single passes: recipes for local learners (LLs), and fusion modes over them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from experiments.single_pass.local_passes import Recipe
from learners.fusion.base import Fusion
from learners.fusion.registry import make_fusion


@dataclass(frozen=True)
class Ours:
    """One of our methods: a recipe for the LLs and a fusion mode."""

    recipe: str
    mode: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def maker(self, learners: int, classes: int, prefer: int) -> Callable[[int], Fusion]:
        """Return a function that builds the fusion rule for a number of cubes."""

        def make(cubes: int) -> Fusion:
            return make_fusion(
                self.mode, learners, classes, cubes=cubes, prefer=prefer, **self.options
            )

        return make


def _committee(*members: Mapping[str, Any]) -> Recipe:
    return Recipe(rules=({"kind": "committee", "members": list(members)},))


def _sgd(rate: float) -> dict[str, Any]:
    return {"kind": "logistic", "rate": rate, "joint": True}


def _bayes(prior: float, fourier: int = 0) -> dict[str, Any]:
    curved = {"fourier": fourier, "spread": 0.3} if fourier else {}
    return {"kind": "bayes", "prior": prior, "joint": True, **curved}


BAYES = {"kind": "bayes"}
RECIPES = {
    "mixed": Recipe(rules=({"kind": "committee", "preset": "mixed"},)),
    "additive": Recipe(rules=({"kind": "committee", "preset": "additive"},)),
    "kdi": Recipe(),
    "bayes": Recipe(rules=(BAYES,)),
    "fourier": Recipe(rules=({**BAYES, "fourier": 60, "spread": 0.3},)),
    "cells": Recipe(rules=({"kind": "cells"},)),
    "additive and cells": _committee(_sgd(0.05), _bayes(0.5), _bayes(0.5, 60), {"kind": "cells"}),
    "cubes": Recipe(
        rules=(
            {"kind": "constant", "label": "benign", "name": "benign"},
            {"kind": "constant", "label": "malignant", "name": "malignant"},
            BAYES,
        ),
        cuts=2,
    ),
    # Candidates for the preset `additive`.
    "joint SGD 0.05": Recipe(rules=(_sgd(0.05),)),
    "joint Bayes 0.5": Recipe(rules=(_bayes(0.5),)),
    "joint Fourier 0.5": Recipe(rules=(_bayes(0.5, 60),)),
    "joint SGD 0.05, Bayes 0.5": _committee(_sgd(0.05), _bayes(0.5)),
    "joint SGD 0.1, Bayes 1": _committee(_sgd(0.1), _bayes(1.0)),
    "joint SGD 0.05, Fourier 0.5": _committee(_sgd(0.05), _bayes(0.5, 60)),
    "joint SGD 0.05, Fourier 1": _committee(_sgd(0.05), _bayes(1.0, 60)),
    "joint SGD 0.1, Fourier 1": _committee(_sgd(0.1), _bayes(1.0, 60)),
}
"""`additive` is joint too: SGD 0.05, Bayes 0.5 and Fourier 0.5."""

FIRM: dict[str, Any] = {"prior_mean": 1.0, "prior_variance": 0.05}
"""For LLs that fit one model together: their log-odds add up, so the stack starts from the sum."""

PROPOSED = "mixed, stack"
"""What `hb init` proposes."""

BOUNDED = "mixed, committee of fusions, drawn"
"""What `hb init --bound` proposes: its bound is about following one expert drawn by its weight."""

OURS = {
    PROPOSED: Ours("mixed", "stack", FIRM),
    BOUNDED: Ours("mixed", "committee", {"use": "sample"}),
    "additive, stack": Ours("additive", "stack", FIRM),
    "additive, odds": Ours("additive", "odds"),
    "additive, committee of fusions": Ours("additive", "committee"),
    "additive, mixture of fusions": Ours("additive", "mixture"),
    "additive, WM": Ours("additive", "wm"),
    "kdi, stack": Ours("kdi", "stack"),
    "kdi, odds": Ours("kdi", "odds"),
    "kdi, odds, small-loss rate": Ours("kdi", "odds", {"rate": "small-loss"}),
    "kdi, committee of fusions": Ours("kdi", "committee"),
    "kdi, confidence votes": Ours("kdi", "confidence"),
    "kdi, WM": Ours("kdi", "wm"),
    "kdi, majority": Ours("kdi", "majority"),
    "bayes with Fourier features, stack": Ours("fourier", "stack"),
    "bayes, stack": Ours("bayes", "stack"),
    "bayes, WM": Ours("bayes", "wm"),
    "bayes and constants in cubes with back-off, WM": Ours("cubes", "wm"),
    "cells that split, stack": Ours("cells", "stack"),
    "cells that split, WM": Ours("cells", "wm"),
}
