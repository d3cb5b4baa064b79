"""The same arithmetic on every x86-64 processor, so that audits and replays find the same bits.

numpy and its BLAS look at the processor and choose among routines that add in a different order, or
approximate a logarithm differently. A rule that learns online carries the last bit on forever, so
a model learned on one machine would not be found again on another. `pin` therefore makes them use
what every x86-64 processor with AVX2 and FMA has. On rows as short as ours wider vectors save
nothing that could be measured. On other kinds, such as arm64, nothing is pinned: BLAS chooses there
too, by names that we could not try.
"""

import os
import platform
from pathlib import Path

CHOICES = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}
"""Environment variables of OpenBLAS and numpy, which read them when they are loaded."""


def pin() -> None:
    """Fix the routines for this process and those it starts; call it before numpy is imported.

    What the environment already says stays as it is.
    """
    if platform.machine() in ("x86_64", "AMD64") and has_fma():
        for name, value in CHOICES.items():
            os.environ.setdefault(name, value)


def has_fma() -> bool:
    """Tell whether the processor has what is chosen; where Linux does not say, suppose not."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return {"avx2", "fma"} <= set(flags.partition("flags")[2].partition("\n")[0].split())
