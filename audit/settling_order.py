"""The order in which labels were settled, from the feedback of several learners."""

from collections.abc import Sequence


def merged_order(
    sequences: Sequence[Sequence[int]], times: Sequence[int]
) -> tuple[list[int], bool]:
    """Merge sequences that are parts of one order; say whether that order is certain.

    A number may occur again in its sequence: only the first time counts. A number is next when it
    stands at the head of every sequence in which it has yet to come; if several could be next, the
    earliest is, and if their times are equal the order is not certain.

    >>> merged_order([[1, 2, 4], [1, 3, 4]], times=[0, 5, 6, 7, 8])
    ([1, 2, 3, 4], True)
    >>> merged_order([[1], [2]], times=[0, 5, 5])
    ([1, 2], False)
    """
    queues = [list(dict.fromkeys(sequence)) for sequence in sequences]
    waits: dict[int, int] = {}
    order: list[int] = []
    for queue in queues:
        for number in queue:
            waits[number] = waits.get(number, 0) + 1
    places = [0] * len(queues)
    placed: set[int] = set()
    certain = True
    while len(placed) < len(waits):
        heads = _heads(queues, places, placed)
        free = [head for head in set(heads) if heads.count(head) == waits[head]]
        # If no head is free, they are not parts of one order; take the earliest head then.
        certain = certain and bool(free)
        first, *others = sorted(free or set(heads), key=lambda head: times[head])
        certain = certain and not (others and times[first] == times[others[0]])
        placed.add(first)
        order.append(first)
    return order, certain


def _heads(queues: Sequence[Sequence[int]], places: list[int], placed: set[int]) -> list[int]:
    """Return what is at the head of each queue, skipping what is done."""
    for i, queue in enumerate(queues):
        while places[i] < len(queue) and queue[places[i]] in placed:
            places[i] += 1
    return [queue[at] for queue, at in zip(queues, places, strict=True) if at < len(queue)]
