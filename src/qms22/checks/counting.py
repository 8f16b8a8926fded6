"""Counting what rows have, and what a batch has more often than known-normal rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22.checks.arrays import Bools, Ints

# A level of an entity, such as a new customer, has so many rows: slips differ from each other.
LEAST_RECURRING = 3
# What so many rows of a batch have, and so large a share of it, is what the batch does.
LEAST_COMMON = 20
LEAST_COMMON_SHARE = 0.02
# So it is if the batch has it more than so many times as often as normal rows do.
_MOVED = 3.0


def least_common(n_rows: int) -> float:
    """Return how many of the rows of a batch have to do what the batch does."""
    return max(LEAST_COMMON, LEAST_COMMON_SHARE * n_rows)


def are_more(counts: Ints, n_rows: int, n_known: Ints, n: int) -> Bools:
    """Return what is more frequent among the rows of a batch than among n normal ones."""
    return counts * n > _MOVED * n_known * n_rows


def find_places(ascending: NDArray[Any], values: NDArray[Any]) -> Ints:
    """Return where values are among different, ascending ones; after the last if they are not."""
    places = np.searchsorted(ascending, values)
    inside = np.flatnonzero(places < len(ascending))
    places[inside[ascending[places[inside]] != values[inside]]] = len(ascending)
    return places


def are_again(keys: NDArray[Any]) -> Bools:
    """Return which keys are equal to one before."""
    found = np.ones(len(keys), dtype=bool)
    found[np.unique(keys, return_index=True)[1]] = False
    return found
