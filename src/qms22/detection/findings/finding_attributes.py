"""A property of rows that findings are made of: codes, and conditions on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Show = Callable[[float], str]

MOST_LISTED = 3


@dataclass(frozen=True, eq=False)
class Attribute:
    """A property of rows, with a code for each value or bin.

    Parameters
    ----------
    column : str
    part : str
        "value"; "new" for values that no known-normal row has; "missing", "hour", "weekday", or
        "word" for a text among numbers.
    codes : ndarray of int
        Of all rows, the known-normal ones first.
    spans : ndarray of shape (n_conditions, 2)
        First and last code of each condition. After `cycle - 1` codes start again at 0.
    costs : ndarray of shape (n_conditions,)
        Minus the logarithms of weights that sum to at most 1, whichever rows are known-normal.
    label : callable
        Returns the text of a condition, and a remark or "".
    cycle : int
        The codes that conditions use are less than this; other codes are up to `cycle`.
    """

    column: str
    part: str
    codes: NDArray[np.intp]
    spans: NDArray[np.intp]
    costs: NDArray[np.float64]
    label: Callable[[int, int], tuple[str, str]]
    cycle: int

    def holds(self, condition: int) -> NDArray[np.bool_]:
        """Return which rows meet a condition."""
        first, last = self.spans[condition]
        is_met: NDArray[np.bool_] = ((self.codes - first) % self.cycle <= last - first) & (
            self.codes < self.cycle
        )
        return is_met


def join_some(names: list[str], word: str = "and") -> str:
    """Return names as a list in words; of many only the first two."""
    if len(names) > MOST_LISTED:
        names = [*names[:2], f"{len(names) - 2} more"]
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
