"""The error of a record that cannot be read."""

from schemas.refusals import Reason


class RecordError(ValueError):
    """A record cannot be read.

    `reason` is a stable code; `detail` names the field and what was expected there. Neither quotes
    anything from the record: no value, and no key that the schema does not know.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason
        self.detail = detail
