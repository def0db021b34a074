"""Adapters by their names: ``agjson.adapters.<name>.ADAPTER``."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
from typing import Annotated

import typer

from agjson.adapter import Adapter
from agjson.cli.streams import Unusable

__all__ = ["AdapterArgument", "adapter_names", "find_adapter"]

_PACKAGE = "agjson.adapters"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")


def adapter_names() -> list[str]:
    """The names of the adapters that are installed, sorted; a package without an `Adapter` record counts too."""
    package = importlib.import_module(_PACKAGE)
    names = (module.name for module in pkgutil.iter_modules(package.__path__) if module.ispkg)
    return sorted(name.replace("_", "-") for name in names)


AdapterArgument = Annotated[
    str,
    typer.Argument(metavar="ADAPTER", autocompletion=adapter_names, help="The adapter's name, for example anthropic."),
]
"""The ADAPTER of the commands that need one."""


def find_adapter(name: str) -> Adapter:
    """The adapter of a name; dashes and underscores are one.

    Raises:
        Unusable: there is none, or a package that it needs is not installed.
    """
    if not _NAME.fullmatch(name):
        raise Unusable(_unknown(name))
    module_name = f"{_PACKAGE}.{name.replace('-', '_')}"
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name == module_name:
            raise Unusable(_unknown(name)) from None
        raise Unusable(f"The adapter {name} needs {error.name}: pip install 'agjson[{name}]'") from None
    adapter = getattr(module, "ADAPTER", None)
    if not isinstance(adapter, Adapter):
        raise Unusable(f"{module_name} has no ADAPTER: the command cannot use it")
    return adapter


def _unknown(name: str) -> str:
    known = adapter_names()
    near = difflib.get_close_matches(name.lower().replace("_", "-"), known, n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"
    return f"No adapter is named {name!r}: {hint}"
