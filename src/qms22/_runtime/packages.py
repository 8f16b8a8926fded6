"""Imports on first use: optional packages, slow modules, and the names of a package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from threading import Lock
from types import ModuleType
from typing import Any


def need(module: str, what: str, extra: str) -> Any:
    """Import an optional module, which `what` needs and an extra of qms22 installs.

    Raise ImportError with the command that installs it if it is missing.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{what} needs {module.split('.')[0]}, which cannot be imported ({error}); run pip "
            f"install 'qms22[{extra}]'"
        ) from error


class _LateModule(ModuleType):
    """Stands for a module until something of it is asked for."""

    _lock = Lock()

    def __getattr__(self, name: str) -> object:
        with self._lock:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def import_late(module: str) -> None:
    """Let all imports of a module wait until something of it is used, in a process of our own.

    The loader of the standard library that does so loads a module as soon as it is imported again.
    """
    late = _LateModule(module)
    late.__spec__ = ModuleSpec(module, None)
    sys.modules.setdefault(module, late)


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package; `homes` has the module of each name."""

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return find, lambda: sorted(homes)
