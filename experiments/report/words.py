"""Words that both forms of the report share."""

from typing import Any

INTRODUCTION = """\
What the learners achieve, measured by `hb experiments all`: the evaluation of the paper (C. Tekin,
J. Yoon, M. van der Schaar, "Adaptive Ensemble Learning with Confidence Bounds", IEEE Transactions
on Signal Processing 65(4), 2017) beside its printed figures, and what goes beyond it. Everything is
seeded: the same command gives the same numbers. Rates are in percent: PER over all patients, FPR
over the healthy, FNR over the ill. `±` is one standard error over the runs; `Δ/se` is ours minus
the paper's in standard errors (of ours, and of the paper's where it prints deviations).
"""


def setting_words(settings: dict[str, Any]) -> str:
    """Return settings as one line.

    >>> setting_words({"runs": 50, "cuts": None})
    'runs 50'
    """
    known = {key: value for key, value in settings.items() if value is not None}
    return ", ".join(f"{key} {value}" for key, value in known.items())
