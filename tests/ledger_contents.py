"""What a ledger holds, for the tests of the ledger."""

from collections.abc import Iterator
from typing import Any

from learners.join import Ledger


def parked_labels(ledger: Ledger) -> int:
    """Return how many labels wait for a diagnosis, according to the counters."""
    resolved = ("parked_label_settled", "parked_label_unknown", "withdrawal_parked")
    came = ledger.counts["label_parked"] + ledger.counts["amendment_parked"]
    return came - sum(ledger.counts[name] for name in resolved)


def dump_all(ledger: Ledger) -> Iterator[tuple[str, Any]]:
    """Return every id with its entry."""
    for queue in (ledger._parked, ledger._open, ledger._diagnosed, ledger._over):
        for name in queue:
            yield name, ledger.dump(name)
