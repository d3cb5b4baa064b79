"""The one error that learners raise on purpose."""


class LearnerError(ValueError):
    """A learner was built or fed with something it cannot take; the message says what to change."""
