"""Ensembles from model files: checks of their arrays.

A model file can hold any numbers, and compiled code follows those of a forest from node to node:
they are checked before a row is scored.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22.estimators.ensemble import QMS22Ensemble
from qms22.estimators.forest import MOST_BINS, Forest
from qms22.estimators.views import DistanceView, ForestView, MembersView, SimilarityView, View

_LAST_BIN = MOST_BINS - 1


def check_views(detector: QMS22Ensemble) -> None:
    """Raise ValueError if the views of an ensemble could not have been learned."""
    n_features = detector.n_features_in_
    for weight in detector.weights_.values():
        _require(math.isfinite(weight) and weight >= 0.0)
    for view in detector.views_.values():
        _require(isinstance(view, View))
        for part in view.parts if isinstance(view, MembersView) else (view,):
            ascending, deviation = part.held_out.ascending, part.held_out.deviation
            _check_numbers(ascending, (None,))
            _require(bool((ascending[1:] >= ascending[:-1]).all()))
            _require(math.isfinite(deviation) and deviation > 0.0)
        if isinstance(view, DistanceView):
            _check_numbers(view.references, (None, n_features))
        elif isinstance(view, SimilarityView):
            _check_numbers(view.normal, (None, n_features))
            _check_numbers(view.outliers, (None, n_features))
        elif isinstance(view, ForestView):
            check_forest(view.forest, n_features)
            keys = view.learned.keys
            _check_array(keys, np.uint64, (None,))
            _require(bool((keys[1:] > keys[:-1]).all()))
            _check_numbers(view.learned.scores, keys.shape)


def check_forest(forest: Forest, n_features: int) -> None:
    """Raise ValueError if a row could leave the nodes of a tree or walk in a circle."""
    first = forest.first_node
    _check_array(first, np.int64, (None,))
    n_nodes = len(forest.value)
    sizes = np.diff(first)
    _require(len(sizes) > 0 and first[0] == 0 and first[-1] == n_nodes and bool((sizes > 0).all()))
    _check_array(forest.edges, np.float64, (n_features, _LAST_BIN))
    _check_array(forest.feature, np.int32, (n_nodes,))
    _check_array(forest.threshold, np.uint8, (n_nodes,))
    _check_array(forest.child, np.int32, (n_nodes,))
    _check_array(forest.value, np.float32, (n_nodes,))
    _require(bool(((forest.feature >= 0) & (forest.feature < n_features)).all()))
    _require(bool(((forest.value >= 0.0) & (forest.value <= 1.0)).all()))
    number = np.arange(n_nodes) - np.repeat(first[:-1], sizes)  # within its tree
    is_leaf = (forest.child == number) & (forest.threshold == _LAST_BIN)
    # Both children of a node come after it.
    has_children = (forest.child > number) & (forest.child < np.repeat(sizes, sizes) - 1)
    _require(bool((is_leaf | has_children).all()))


def _check_numbers(array: NDArray[Any], shape: tuple[int | None, ...]) -> None:
    """Raise ValueError if an array does not hold finite numbers in this shape."""
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    _check_array(array, dtype, shape)
    _require(bool(np.isfinite(array).all()))


def _check_array(array: NDArray[Any], dtype: Any, shape: tuple[int | None, ...]) -> None:
    """Raise ValueError if an array has another type or shape; None is any length but 0."""
    _require(type(array) is np.ndarray and array.dtype == dtype and array.ndim == len(shape))
    for length, expected in zip(array.shape, shape, strict=True):
        _require(length > 0 and expected in (None, length))


def _require(is_valid: bool) -> None:
    if not is_valid:
        raise ValueError("the views of the ensemble are damaged")
