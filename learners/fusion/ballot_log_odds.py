"""A ballot as log-odds: the common currency of confidence-weighted fusion.

An LL may send the log-odds of each label against the others; or only its label and the accuracy of
its rule; or only its label. All become (n, M, K) log-odds:

    sent log-odds       as they are
    label, accuracy a   ln(a / (1 - a)) for its label; each other label has the chance
                        (1 - a)/(K - 1). With a below one half this counts against its label, as it
                        should when an LL tries a rule it knows to be bad
    label only          BARE for its label, as if from an accuracy of 73 percent

All are cut off at `clip`, because one LL's unfounded certainty must not outvote all others. An LL
that sent nothing counts as zeros.
"""

from math import exp

import numpy as np

from learners.arrays.types import Floats
from learners.errors import LearnerError
from learners.fusion.base import Ballot, unsent

BARE = 1.0
"""Log-odds of a label that came without any confidence."""

CLIP = 5.0
"""The most that one LL can contribute, unless set otherwise: 5 is a certainty of 99.3 percent."""


def check_clip(clip: float) -> None:
    """Refuse a cut-off that would leave nothing, or infinities."""
    if not 0.0 < clip <= 30.0:
        raise LearnerError(f"clip must lie above 0 and up to 30, not {clip}")


def accuracy_log_odds(accuracy: Floats, clip: float = CLIP) -> Floats:
    """Return ln(a/(1-a)), cut off at `clip`; nan stays nan.

    >>> accuracy_log_odds(np.array([0.5, 1.0, 0.0, 0.9])).round(3).tolist()
    [0.0, 5.0, -5.0, 2.197]
    """
    least = 1.0 / (1.0 + exp(clip))
    bounded = np.clip(accuracy, least, 1.0 - least)
    return np.asarray(np.clip(np.log(bounded / (1.0 - bounded)), -clip, clip))


def vote_log_odds(ballot: Ballot, own: Floats) -> Floats:
    """Spread the log-odds (n, M) of each LL's own label over all K labels, (n, M, K)."""
    if ballot.classes == 2:
        opposite = -own
    else:
        # The rest of the chance in equal parts: p = s(-own)/(K-1), as log-odds.
        opposite = -np.log((ballot.classes - 1) * (1.0 + np.exp(own)) - 1.0)
    voted = ballot.labels[:, :, None] == np.arange(ballot.classes)
    return np.where(voted, own[:, :, None], opposite[:, :, None])


def ballot_log_odds(ballot: Ballot, clip: float = CLIP) -> Floats:
    """Return each LL's log-odds of each label, (n, M, K); 0 for absent LLs."""
    if unsent(ballot.accuracy):
        own = np.full(ballot.labels.shape, min(BARE, clip))
    else:
        own = accuracy_log_odds(ballot.accuracy, clip)
        own = np.where(np.isnan(own), min(BARE, clip), own)
    log_odds = vote_log_odds(ballot, own)
    if not unsent(ballot.log_odds):
        log_odds = np.where(np.isnan(ballot.log_odds), log_odds, ballot.log_odds)
    return np.where(ballot.present[:, :, None], np.clip(log_odds, -clip, clip), 0.0)


def log_odds_of_others(ballot: Ballot, clip: float = CLIP) -> Floats:
    """Return, for each LL, the log-odds of all other LLs together: (n, M, K) sums.

    >>> from learners.arrays.seeds import seeds_of
    >>> odds = np.array([[[-1.0, 1.0], [2.0, -2.0], [-0.5, 0.5]]])
    >>> labels = np.array([[1, 0, 1]])
    >>> ballot = Ballot.of(labels, seeds_of(["a"]), classes=2, log_odds=odds)
    >>> log_odds_of_others(ballot)[0, :, 1].tolist()
    [-1.5, 1.5, -1.0]
    """
    log_odds = ballot_log_odds(ballot, clip)
    return np.asarray(log_odds.sum(axis=1, keepdims=True) - log_odds)


def label_chances(log_odds: Floats) -> Floats:
    """Turn log-odds (n, K) of each label against the others into chances that sum to one."""
    chances = 1.0 / (1.0 + np.exp(-np.clip(log_odds, -700.0, 700.0)))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))
