"""What every command shares: tables for people, one JSON object for scripts, errors in one line."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

OURS = {"agents", "audit", "cli", "learners", "schemas", "settings", "streams"}
EXIT_FOUND = 1
EXIT_INPUT = 3
EXIT_INTERRUPTED = 130

out = Console()
err = Console(stderr=True)

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")
]


def print_json(report: dict[str, Any]) -> None:
    """Print a command's whole report as one JSON object."""
    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    sys.stdout.write(orjson.dumps(report, option=options).decode() + "\n")


def table(title: str, *columns: str, right: tuple[str, ...] = ()) -> Table:
    """Return an empty table in the house style; columns named in `right` hold numbers."""
    empty = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        empty.add_column(column, justify="right" if column in right else "left")
    return empty


@contextmanager
def guarded() -> Iterator[None]:
    """Turn the errors that a user can act on into one line and an exit code."""
    from learners.errors import LearnerError
    from schemas.errors import RecordError
    from settings.errors import HbError

    try:
        yield
    except HbError as error:
        fail(str(error), error.exit_code)
    except (LearnerError, RecordError) as error:
        fail(str(error), EXIT_INPUT)
    except ModuleNotFoundError as error:
        fail(_missing(error), EXIT_INPUT)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def interrupt_on_sigterm() -> None:
    """Let SIGTERM do what Ctrl-C does, so that whatever this command started ends with it."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        on_ctrl_c = signal.getsignal(signal.SIGINT)
        if callable(on_ctrl_c):
            on_ctrl_c(number, frame)
        else:  # a shell's background job ignores Ctrl-C
            raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def _missing(error: ModuleNotFoundError) -> str:
    """Name a package that this install leaves out; a module of ours that is missing is a bug."""
    from agents.extras import advice

    if (error.name or "").partition(".")[0] in OURS:
        raise error
    return advice(error)


def fail(message: str, code: int) -> None:
    """Say what went wrong on standard error and end with `code`."""
    err.print(f"hb: {message}", style="red", markup=False, highlight=False, soft_wrap=True)
    sys.exit(code)
