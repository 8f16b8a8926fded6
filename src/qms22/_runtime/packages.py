"""Import of optional packages."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(module: str, what: str = "the table", extra: str = "table") -> Any:
    """Import a module; raise ImportError with the command that installs it if it is missing.

    Parameters
    ----------
    module : str
    what : str
        What needs the module, for the message.
    extra : str
        The extra of qms22 that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError(
            f"{what} needs {package}, which cannot be imported ({error}); run pip install "
            f"'qms22[{extra}]'"
        ) from error
