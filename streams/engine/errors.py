"""Errors that stop a task: a retry would fail the same way."""

from settings.errors import HbError


class FinalError(HbError):
    """The task stops, with this sentence as its reason, until an operator has acted on it."""


class RecordTooLargeError(FinalError):
    """A record that a task has to write is larger than its topic accepts."""

    def __init__(self, topic: str, size: int | None = None, limit: int | None = None) -> None:
        if size is None:
            super().__init__(
                f"the broker refuses a record for {topic} as too large; max.message.bytes of the"
                " topic is less than declared: hb topics check --alter"
            )
        else:
            super().__init__(
                f"a record of {size} bytes for {topic} is larger than the {limit} bytes that the"
                " topic is made for; hb settings check tells how large models are"
            )
