"""Delays of labels in experiments: fixed, or drawn from a distribution.

>>> parse_delay("5s").draw(np.random.default_rng(0), 2).tolist()
[5.0, 5.0]
>>> parse_delay("exp:2s").draw(np.random.default_rng(0), 2).round(2).tolist()
[1.36, 2.04]
>>> parse_delay("uniform:1s..10s").draw(np.random.default_rng(0), 2).round(2).tolist()
[6.73, 3.43]
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from pydantic_core import PydanticCustomError

from learners.arrays.types import Floats
from settings.errors import InputError
from settings.sections.base import parse_duration

_EXPECTED = "expected 5s, exp:5s (its mean) or uniform:1s..10s"


@dataclass(frozen=True)
class Delay:
    """Seconds between a patient and its label."""

    text: str
    draw: Callable[[np.random.Generator, int], Floats]

    def __str__(self) -> str:
        return self.text


def fixed(seconds: float) -> Delay:
    """Return a delay that is always the same."""
    return Delay(f"{seconds:g}s", lambda _, n: np.full(n, seconds))


def parse_delay(text: str) -> Delay:
    """Read a delay, or raise InputError."""
    kind, _, value = text.rpartition(":")
    try:
        if kind == "":
            seconds = _seconds(value)
            return Delay(text, lambda _, n: np.full(n, seconds))
        if kind == "exp":
            mean = _seconds(value)
            return Delay(text, lambda rng, n: rng.exponential(mean, n))
        if kind == "uniform":
            low, high = map(_seconds, value.split(".."))
            if low <= high:
                return Delay(text, lambda rng, n: rng.uniform(low, high, n))
    except (PydanticCustomError, ValueError):
        pass
    raise InputError(f"--label-delay {text}: {_EXPECTED}")


def _seconds(text: str) -> float:
    return 0.0 if text == "0" else parse_duration(text).total_seconds()
