"""Packages that only tables need."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(module: str, path: str = "the file") -> Any:
    """Import a module, or say how to get it.

    Parameters
    ----------
    module : str
    path : str
        What cannot be read without it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError(
            f"{path} is read with {package}, which is not installed; run pip install 'qms22[table]'"
        ) from error
