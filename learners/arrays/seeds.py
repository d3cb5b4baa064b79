"""Randomness that repeats: every draw is a function of the instance id.

A re-run, a restart or an audit sees the same ids and so draws the same numbers. `salt` keeps draws
for different purposes independent of each other.

    >>> seeds = seeds_of(["a17", "a18"])
    >>> bool((seeds == seeds_of(["a17", "a18"])).all())
    True
    >>> uniform(seeds, salt=1).shape
    (2,)
"""

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np

from learners.arrays.types import Floats, Ints, Seeds

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def seeds_of(ids: Iterable[str]) -> Seeds:
    """Return one 64-bit seed per instance id."""
    digests = b"".join(blake2b(name.encode(), digest_size=8).digest() for name in ids)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def mix(seeds: Seeds, salt: int = 0) -> Seeds:
    """Scramble seeds with the finaliser of splitmix64 (Steele, Lea and Flood, 2014)."""
    with np.errstate(over="ignore"):
        z = seeds + _GOLDEN * np.uint64(salt + 1)
        z = (z ^ (z >> np.uint64(30))) * _MIX_1
        z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


def uniform(seeds: Seeds, salt: int = 0) -> Floats:
    """Draw one number in [0, 1) per seed."""
    return (mix(seeds, salt) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def pick(seeds: Seeds, count: int | Ints, salt: int = 0) -> Ints:
    """Draw one index in 0 … count-1 per seed; `count` may differ from seed to seed."""
    return np.minimum((uniform(seeds, salt) * count).astype(np.int64), count - 1)
