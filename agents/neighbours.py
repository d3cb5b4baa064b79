"""Several ensembles side by side: what one of them owns must not belong to another.

An ensemble owns its topics and transactional ids (both begin with `topics.prefix`), its consumer
groups and the label of its metrics (its name), and its state folder. The ports of workers cannot
collide: a worker whose port is taken uses the next free one.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations

from settings.errors import InputError
from settings.model import Settings
from streams.kafka.topics import declared

READERS = "-reader"
"""What the consumer groups of an ensemble's readers are called after its name."""


def check_apart(ensembles: Mapping[str, Settings]) -> None:
    """Raise InputError if two ensembles, by settings file, would interfere with each other."""
    for (first, a), (second, b) in combinations(ensembles.items(), 2):
        for clash in _clashes(a, b):
            raise InputError(f"{first} and {second} {clash}")


def _clashes(a: Settings, b: Settings) -> Iterator[str]:
    if a.name == b.name:
        yield f"both call their ensemble {a.name}: give one of them another name"
    if _same_broker(a, b):
        for ensemble, rival in ((a, b), (b, a)):
            if ensemble.name.startswith(rival.name + READERS):
                yield (
                    f"would share the consumer group {ensemble.name}, which readers of {rival.name}"
                    " use: give one of them another name"
                )
        shared = {topic.name for topic in declared(a)} & {topic.name for topic in declared(b)}
        if shared:
            yield (
                f"would share {len(shared)} topics, {min(shared)} among them: give one of them"
                " another topics.prefix"
            )
    folder, other = a.worker.state.absolute(), b.worker.state.absolute()
    if folder.is_relative_to(other) or other.is_relative_to(folder):
        yield f"would keep their state in one folder, {min(folder, other)}: change worker.state"


def _same_broker(a: Settings, b: Settings) -> bool:
    """Tell whether two ensembles use one broker, as far as its addresses show."""
    return bool(_addresses(a) & _addresses(b))


def _addresses(settings: Settings) -> set[str]:
    return {address.strip() for address in (settings.broker.bootstrap or "").split(",")}
