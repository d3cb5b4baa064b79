"""The errors that learners raise on purpose."""

from collections.abc import Iterable
from difflib import get_close_matches


class LearnerError(ValueError):
    """A learner was built or fed with something it cannot take; the message says what to change."""


class OptionError(LearnerError):
    """An option of a rule cannot be used.

    option    its key in the rule's table
    message   what is wrong with it, without the names of rule and option
    """

    def __init__(self, rule: str, option: str, message: str) -> None:
        super().__init__(f"rule {rule}: option {option}: {message}")
        self.option = option
        self.message = message


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a question about the known word that was probably meant, or nothing.

    >>> suggestion("logisitc", ["linear", "logistic"])
    '; did you mean logistic?'
    """
    close = get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
