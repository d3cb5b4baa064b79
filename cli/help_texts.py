"""How options are shown in help texts."""

from typing import Any

from typer.core import TyperOption

_with_type = TyperOption.display_type_rich


def _without_bool(self: TyperOption, ctx: Any) -> str | None:
    return None if self.is_flag else _with_type(self, ctx)


def show_flags_plainly() -> None:
    """Show a flag by its name alone: Typer would add `<bool>`, as if it took a value."""
    TyperOption.display_type_rich = _without_bool  # type: ignore[method-assign]
