"""The words and the number format of error rates and diagnoses, the same wherever people read them.

    error rate     wrong among all labelled patients                      per, the paper's PER
    miss rate      wrong among those that have the positive label         fnr
    false alarms   wrong among all others, as a share of them             fpr

Always in this order. These and all other shares are in percent with one decimal. Keys in JSON and
metrics keep the paper's short names.
"""

from collections.abc import Iterable
from math import ceil, floor

RATES = {"per": "error rate", "fnr": "miss rate", "fpr": "false alarms"}
"""What people call each rate, in the order in which they read them."""


WHY = {
    "no_labels": "No label had been learned when it was made.",
    "few_labels": "Too few labels had been learned when it was made.",
    "no_opinion": "No learner had an opinion.",
    "several_possible": "More than one label cannot be excluded.",
    "none_fits": "The patient is unlike those of every label.",
    "learner_missing": "A learner did not answer in time.",
    "value_missing": "A learner lacked values of this patient.",
    "new_cube": "A learner's rule had not been tried on patients like this one.",
}
"""The codes in a diagnosis's `why` (docs/confidence.md), as sentences."""


def because(codes: Iterable[str]) -> list[str]:
    """Return the sentences of codes; one that is not known yet as it is.

    >>> because(["few_labels", "some_news"])
    ['Too few labels had been learned when it was made.', 'some news']
    """
    return [WHY.get(code, code.replace("_", " ")) for code in codes]


def percent(share: float | None) -> str:
    """Return a share in percent, or a dash where there is none.

    >>> percent(0.0312), percent(None)
    ('3.1 %', '-')
    """
    return "-" if share is None else f"{100 * share:.1f} %"


def chance(share: float) -> str:
    """Return a chance in percent; nothing is rounded to certainty.

    >>> chance(0.679), chance(0.9997), chance(0.0)
    ('67.9 %', '>99.9 %', '<0.1 %')
    """
    if share > 0.9995:
        return f">{percent(0.999)}"
    return f"<{percent(0.001)}" if share < 0.0005 else percent(share)


def interval(low: float, high: float) -> str:
    """Return an interval of shares in percent, rounded outwards.

    >>> interval(0.9961, 0.9999), interval(0.943, 0.982)
    ('99 to 100 %', '94 to 99 %')
    """
    return f"{floor(100 * low)} to {ceil(100 * high)} %"


def counted(count: int, one: str, more: str) -> str:
    """Return a count with its noun and its verb.

    >>> counted(1, "row has no label", "rows have no label")
    '1 row has no label'
    >>> counted(1200, "row", "rows")
    '1,200 rows'
    """
    return f"{count:,} {one if count == 1 else more}"


def give_or_take(share: float | None, error: float | None, unit: str = "%") -> str:
    """Return a share in percent with its standard error.

    >>> give_or_take(0.0312, 0.0049), give_or_take(-0.002, 0.004, "points")
    ('3.1 ± 0.5 %', '-0.2 ± 0.4 points')
    """
    if share is None or error is None:
        return percent(share)
    return f"{100 * share:.1f} ± {100 * error:.1f} {unit}"
