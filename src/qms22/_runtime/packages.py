"""Import of optional packages."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(module: str, name: str = "the file") -> Any:
    """Import a module; raise ImportError with the command that installs it if it is missing.

    Parameters
    ----------
    module : str
    name : str
        What cannot be read without it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError(
            f"{name} is read with {package}, which is not installed; run pip install 'qms22[table]'"
        ) from error
