"""Ranks of scores that are on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence

import dask
import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from qms22.cluster.dask_table import add_up

_BITS_PER_PASS = 16
_SIGN = np.uint64(1 << 63)


def top_positions(scores: da.Array, k: int) -> NDArray[np.intp]:
    """Return the positions of the k highest scores, highest first; at ties the lower position.

    Every block sends its own k highest.
    """
    firsts = np.cumsum(scores.chunks[0]) - scores.chunks[0]
    found = dask.compute(
        *(
            delayed(_top_of_block)(block, k, int(first))
            for block, first in zip(scores.to_delayed(), firsts, strict=True)
        )
    )
    highest, positions = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    top: NDArray[np.intp] = positions[np.argsort(-highest, kind="stable")[:k]]
    return top


def order_statistics(scores: da.Array, ranks: Sequence[int]) -> list[float]:
    """Return the scores that have some ranks in ascending order, from 0.

    Passes over the scores find 16 bits each of the wanted ones, by counting: no machine holds more
    than the scores of a block.
    """
    # For each rank the first bits of its score, and its rank among the scores with these bits.
    found = [(0, int(rank)) for rank in ranks]
    blocks = scores.to_delayed()
    for shift in range(64 - _BITS_PER_PASS, -1, -_BITS_PER_PASS):
        starts = [start for start, _ in found]
        counts = add_up([delayed(_count_digits)(block, starts, shift) for block in blocks])
        found = [_next_digit(*pair, of_rank) for pair, of_rank in zip(found, counts, strict=True)]
    keys = np.array([start for start, _ in found], dtype=np.uint64)
    values = np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)
    return [float(value) for value in values]


def _top_of_block(
    scores: NDArray[np.float64], k: int, first: int
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    top = np.argsort(-scores, kind="stable")[:k]
    return scores[top], first + top


def _count_digits(scores: NDArray[np.float64], starts: list[int], shift: int) -> NDArray[np.int64]:
    """Count the values of the next digit of all scores that start with certain bits."""
    # Unsigned integers in the order of the scores; the sum removes the sign of a zero.
    bits = (scores + 0.0).view(np.uint64)
    keys = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    digits = keys >> np.uint64(shift)
    # Two shifts: one by 64 bits is undefined.
    leading = digits >> np.uint64(_BITS_PER_PASS) if shift + _BITS_PER_PASS < 64 else digits * 0
    last = digits & np.uint64(2**_BITS_PER_PASS - 1)
    return np.stack(
        [
            np.bincount(last[leading == start].astype(np.intp), minlength=2**_BITS_PER_PASS)
            for start in starts
        ]
    )


def _next_digit(start: int, rank: int, counts: NDArray[np.int64]) -> tuple[int, int]:
    n_lower = np.cumsum(counts) - counts
    digit = int(np.searchsorted(n_lower, rank, side="right")) - 1
    return (start << _BITS_PER_PASS) + digit, rank - int(n_lower[digit])
