"""The one error that records raise on purpose."""


class RecordError(ValueError):
    """A record cannot be read. `reason` is a stable code; the text never holds a value."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
