"""Text that both forms of the report share."""

from collections.abc import Mapping
from typing import Any

from experiments.report.result import Result

INTRODUCTION = """\
What the learners achieve, measured by `hb experiments all`: the evaluation of the paper (C. Tekin,
J. Yoon, M. van der Schaar, "Adaptive Ensemble Learning with Confidence Bounds", IEEE Transactions
on Signal Processing 65(4), 2017) beside its printed figures, and what goes beyond it. Everything is
seeded: the same command gives the same numbers. Rates are in percent: PER over all patients, FPR
over the healthy, FNR over the ill. `±` is one standard error over the runs; `Δ/se` is ours minus
the paper's in standard errors (of ours, and of the paper's where it prints deviations). A claim
about two figures whose distance is within its standard error is not decided. Runs and orders share
the same patients, so their errors say nothing about other patients: comparisons with River also
have a bootstrap over patients.
"""

UNSAID = (
    "The paper prints no numbers for its figures: only their shapes can be compared.",
    (
        "It does not say how features are scaled, which c and h were used, what the features of"
        " the contextual EL are, or the settings of LR, SVM and AdaBoost. What was used here stands"
        " with each result; the sweep shows how much it matters."
    ),
    (
        "Of the fusion rules in Table II, only Hedge and Weighted Majority are defined in the"
        " paper. The updates of PWM, Blum's variant and TrackExp were not checked against their"
        " primary texts, which could not be reached; online AdaBoost's is the one River"
        " implements. A difference in these rows may be a difference of algorithms."
    ),
    (
        "With c = 1 the index's second term is above 1 until a rule has about ninety trials in its"
        " cube. Under bandit feedback, as IUP is defined, the rules of a cube then take turns"
        " whatever their accuracy, and the printed tables do not come out. Under full feedback,"
        " which a footnote allows, all rules of a cube have the same count; with all 569 patients"
        " and h on the estimated accuracy most of the printed figures do (see the protocols)."
    ),
    (
        "Under bandit feedback a positive rule that failed its one trial in a cube has the mean 0,"
        " which no h can raise: only c's term can, and then in all cubes at once. So at patient"
        " 1001 the FNR cannot be brought below 3 % without calling many of the healthy ill. Under"
        " full feedback it can."
    ),
    (
        "The text has all experiments but the first two draw from all 569 patients, yet their"
        " tables repeat figures of the first, which drew from 284. The protocols run both; all"
        " other experiments here draw from 284, with bandit feedback unless they say otherwise."
    ),
    (
        "Each of the 284 patients is drawn about 35 times, so the paper's protocol mostly measures"
        " how well a patient seen before is remembered. First visits are shown apart, and the"
        " single pass leaves repeats out."
    ),
)
"""What limits the comparison with the paper."""


def headlines(results: Mapping[str, Result]) -> list[tuple[str, str]]:
    """Return the headline figures, each with a short explanation."""
    lines = []
    if "table1" in results:
        f = results["table1"].figures
        lines.append((f"{f['WM.PER']:.2f} %", "WM in the paper's Table I; the paper prints 2.96 %"))
    if "best" in results:
        f = results["best"].figures
        lines += [
            (
                f"{f['PER']:.2f} %",
                (
                    f"our best in the paper's protocol, at FNR {f['FNR']:.2f} %; the paper's best"
                    " is 2.31 %"
                ),
            ),
            (
                f"{f['single_pass_PER']:.2f} %",
                (
                    "in a single pass, three learners of ten features; River's best with all"
                    f" thirty: {f['single_pass_river_best_PER']:.2f} %"
                ),
            ),
        ]
        if "single_pass_PER_at_FNR_3" in f:
            lines.append(
                (
                    f"{f['single_pass_PER_at_FNR_3']:.2f} %",
                    (
                        "the same at FNR <= 3 %; River's best:"
                        f" {f['single_pass_river_best_PER_at_FNR_3']:.2f} %"
                    ),
                )
            )
    return lines


def setting_words(settings: dict[str, Any]) -> str:
    """Return settings as one line.

    >>> setting_words({"runs": 50, "cuts": None})
    'runs 50'
    """
    words = {key: value for key, value in settings.items() if value is not None}
    return ", ".join(f"{key} {value}" for key, value in words.items())
