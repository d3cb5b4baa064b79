"""Errors that a user can act on; each has the exit code of the command that it ends."""

from collections.abc import Sequence


class HbError(Exception):
    """Base of the errors that end a command with one line instead of a stack trace."""

    exit_code = 1


class SettingsError(HbError):
    """The settings file, or an override of it, is not usable; the message names the key.

    `problems` holds the single problems, if there are several; each prints as one line.
    """

    exit_code = 3

    def __init__(self, message: str, problems: Sequence[object] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class InputError(HbError):
    """A file or argument that the user gave cannot be used."""

    exit_code = 3


class BrokerError(HbError):
    """The broker cannot be started, reached or used."""

    exit_code = 4
