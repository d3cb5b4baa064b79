"""Errors that a user of the product can act on; each names the exit code of the command it ends."""


class HbError(Exception):
    """Base of the errors that end a command with one line instead of a stack trace."""

    exit_code = 1


class SettingsError(HbError):
    """The settings file, or an override of it, is not usable; the message names the key."""

    exit_code = 3


class InputError(HbError):
    """A file or argument that the user gave cannot be used."""

    exit_code = 3


class BrokerError(HbError):
    """The broker cannot be started, reached or used."""

    exit_code = 4
