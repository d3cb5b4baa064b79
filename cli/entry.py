"""The `hb` program: the command, or a sentence where the packages it needs are not installed."""

import sys

from agents.extras import advice
from learners.arrays.processor import pin

_EXIT = 3


def main() -> None:
    """Run `hb`."""
    pin()
    try:
        from cli.main import main as run
    except ModuleNotFoundError as error:
        sys.stderr.write(f"hb: {advice(error)}\n")
        sys.exit(_EXIT)
    run()
