"""Imports on first use: optional packages, and the names of a package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def need(module: str, what: str = "the table", extra: str | None = None) -> Any:
    """Import a module; raise ImportError with the command that installs it if it is missing.

    `what` needs the module, which the extra of qms22, or by default qms22 itself, installs.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package, install = module.split(".")[0], "qms22" if extra is None else f"'qms22[{extra}]'"
        raise ImportError(
            f"{what} needs {package}, which cannot be imported ({error}); run pip install {install}"
        ) from error


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package; `homes` has the module of each name."""

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return find, lambda: sorted(homes)
