"""Import of packages on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(module: str, what: str = "the table", extra: str | None = None) -> Any:
    """Import a module; raise ImportError with the command that installs it if it is missing.

    Parameters
    ----------
    module : str
    what : str
        What needs the module, for the message.
    extra : str, optional
        The extra of qms22 that installs it; by default qms22 itself does.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError(
            f"{what} needs {package}, which cannot be imported ({error}); "
            f"run pip install {install_name(extra)}"
        ) from error


def install_name(extra: str | None) -> str:
    """Return what pip has to install for an extra.

    >>> install_name("plot"), install_name(None)
    ("'qms22[plot]'", 'qms22')
    """
    return "qms22" if extra is None else f"'qms22[{extra}]'"
