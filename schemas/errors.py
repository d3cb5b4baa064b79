"""The one error that records raise on purpose."""

from schemas.reasons import Reason


class RecordError(ValueError):
    """A record cannot be read.

    `reason` is a stable code; `detail` names the field and what was expected there. Neither ever
    holds anything out of the record: not a value, not a key that the schema does not know.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason
        self.detail = detail
