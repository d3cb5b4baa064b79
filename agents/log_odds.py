"""Log-odds as they travel and as learners hear them."""

from collections.abc import Sequence

import numpy as np

from learners.arrays.types import Floats
from settings.model import Settings


def fits(sent: Sequence[float] | None, settings: Settings) -> bool:
    """Tell whether log-odds were not sent at all, or one per label, or one of two labels."""
    K = len(settings.labels)
    return sent is None or len(sent) == K or (K == 2 and len(sent) == 1)


def opinions_of(sent: Sequence[Sequence[float] | None], settings: Settings) -> Floats:
    """Return (n, K) log-odds; with two labels one number, that of the positive one, is sent.

    Rows where none were sent, or some that do not fit, are nan.
    """
    K = len(settings.labels)
    positive = settings.labels.index(settings.positive)
    heard = np.full((len(sent), K), np.nan)
    for row, odds in enumerate(sent):
        if odds is not None and K == 2 and len(odds) == 1:
            heard[row] = -odds[0]
            heard[row, positive] = odds[0]
        elif odds is not None and len(odds) == K:
            heard[row] = odds
    return heard
