"""A property of rows that findings are made of: codes, and conditions on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Show = Callable[[float], str]

# Longer lists are cut: a name should fit in a line.
MOST_LISTED = 3


@dataclass(frozen=True, eq=False)
class Attribute:
    """A property of rows, with a code for each value or bin; known-normal rows come first.

    `part` is "value"; "new" for values that no known-normal row has; "missing", "hour", "weekday",
    or "word" for a text among numbers. `spans` has the first and last code of each condition: codes
    less than `cycle`, after which they start again at 0. `costs` are minus the logarithms of
    weights that sum to at most 1, whichever rows are known-normal. `label` returns the text of a
    condition, and a remark or "".
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
        first, last = self.spans[condition].tolist()
        return are_in_span(self.codes, first, last, self.cycle)


def are_in_span(codes: NDArray[np.intp], first: int, last: int, cycle: int) -> NDArray[np.bool_]:
    """Return which codes are in a span; after the `cycle` codes start again at 0."""
    are_in: NDArray[np.bool_] = ((codes - first) % cycle <= last - first) & (codes < cycle)
    return are_in


def join_some(names: list[str], word: str = "and") -> str:
    """Return names as a list in words; of many only the first two."""
    if len(names) > MOST_LISTED:
        names = [*names[:2], f"{len(names) - 2} more"]
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
