"""How options and arguments are shown in help texts."""

from typing import Any

from typer.core import TyperArgument, TyperOption

_with_type = TyperOption.display_type_rich
_PLAIN = {
    "<int>": "N",
    "<int range>": "N",
    "<float>": "NUMBER",
    "<float range>": "NUMBER",
    "<str>": "TEXT",
    "<path>": "PATH",
}


def _option(self: TyperOption, ctx: Any) -> str | None:
    """Return a word for what follows the option; a flag takes nothing."""
    if self.is_flag:
        return None
    text = _with_type(self, ctx)
    return _PLAIN.get(text or "", text)


def _argument(self: Any, ctx: Any) -> str | None:
    """Return nothing: the name of an argument says what it is."""
    del self, ctx
    return None


def show_plain_types() -> None:
    """Show words for people where Typer would show Python's types: `N` instead of `<int range>`."""
    TyperOption.display_type_rich = _option  # type: ignore[method-assign]
    TyperArgument.display_type_rich = _argument  # type: ignore[method-assign]
