"""Rival detectors behind scikit-learn's interface, and the registry that builds them by name."""

# Re-exports only, and only when asked for: listing detectors need not wait for scikit-learn.
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qms22.detectors._brm import BRM
    from qms22.detectors._knn import KNNDetector
    from qms22.detectors._ockra import OCKRA

__all__ = ["BRM", "OCKRA", "KNNDetector"]

_HOMES = {
    "BRM": "qms22.detectors._brm",
    "KNNDetector": "qms22.detectors._knn",
    "OCKRA": "qms22.detectors._ockra",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'qms22.detectors' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
