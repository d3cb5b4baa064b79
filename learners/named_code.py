"""Python code that settings name as `package.module:name`, from packages that they allow."""

from collections.abc import Collection
from importlib import import_module
from typing import Any

from learners.errors import OptionError


def within(module: str, packages: Collection[str]) -> bool:
    """Tell whether a module is one of some packages, or below one.

    >>> within("clinic.rules", ["clinic"]), within("clinical", ["clinic"])
    (True, False)
    """
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def load(rule: str, option: str, target: str, allowed: Collection[str]) -> Any:
    """Import `package.module:attribute` of an allowed package; an OptionError says what is wrong.

    Nothing is imported from any other package: importing is running.
    """
    module, separator, attribute = target.partition(":")
    if not (module and separator and attribute):
        raise OptionError(rule, option, f"{target!r} must have the form package.module:name")
    if not within(module, allowed):
        raise OptionError(rule, option, f"{target!r}: {_how_to_allow(module)}")
    code = _attribute(rule, option, target, module, attribute)
    home = getattr(code, "__module__", None) or module
    if not within(home, allowed):
        message = f"{target!r}: it comes from {home}; {_how_to_allow(home)}"
        raise OptionError(rule, option, message)
    return code


def _how_to_allow(module: str) -> str:
    package = module.partition(".")[0]
    return f'code of {package} is not allowed; if you trust it: [rules] packages = ["{package}"]'


def _attribute(rule: str, option: str, target: str, module: str, attribute: str) -> Any:
    try:
        code = getattr(import_module(module), attribute, None)
    except ModuleNotFoundError as error:
        raise OptionError(rule, option, f"{target!r}: no module named {error.name}") from error
    except Exception as error:
        raised = f"importing it raised {type(error).__name__}: {error}"
        raise OptionError(rule, option, f"{target!r}: {raised}") from error
    if not callable(code):
        raise OptionError(rule, option, f"{target!r}: {module} has no callable {attribute}")
    return code
