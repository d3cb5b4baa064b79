"""Rows that a rule fails on, told apart from the others by halving, which takes few calls."""

from collections.abc import Callable
from typing import TypeVar

from learners.rules.base import RuleError

_Result = TypeVar("_Result")


def sift(
    count: int, work: Callable[[slice], _Result]
) -> tuple[list[tuple[slice, _Result]], list[tuple[int, RuleError]]]:
    """Do some work for all of `count` rows; leave out those that it raises RuleError for.

    Returns the results in the order of the rows, and the rows left out. One that fails among a
    thousand takes some twenty calls. A call that fails must leave nothing behind.

    >>> def halve(rows: slice) -> str:
    ...     if 2 in range(rows.start, rows.stop):
    ...         raise RuleError("halve", "raised ValueError")
    ...     return f"{rows.start} to {rows.stop}"
    >>> results, failed = sift(4, halve)
    >>> [result for _, result in results], [row for row, _ in failed]
    (['0 to 2', '3 to 4'], [2])
    """
    results: list[tuple[slice, _Result]] = []
    failed: list[tuple[int, RuleError]] = []
    waiting = [slice(0, count)] if count else []
    while waiting:
        part = waiting.pop()
        try:
            results.append((part, work(part)))
        except RuleError as error:
            if part.stop - part.start == 1:
                failed.append((part.start, error))
                continue
            middle = (part.start + part.stop) // 2
            waiting += [slice(middle, part.stop), slice(part.start, middle)]
    return results, failed
