"""Import of packages on first use."""

from __future__ import annotations

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
