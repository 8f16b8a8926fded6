"""The compiled kernel: CPM by the interval method, member values, forests, distances."""

from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

class BuildInfo(TypedDict):
    """How the kernel was compiled, and what this CPU runs of it."""

    compiler: str
    flags: str
    instruction_sets: list[str]
    runs_here: list[str]
    chosen: str

class Solver:
    """The coordinate perturbation method on one task in memory."""

    def __new__(
        cls,
        x: NDArray[np.float64],
        group: NDArray[np.int32],
        group_weight: NDArray[np.float64],
        row_weight: NDArray[np.float64] | None,
        a: NDArray[np.float64],
        b: NDArray[np.float64],
        *,
        alpha: float,
        floor: float,
        tolerance: float,
        step_a: float,
        step_b: float,
        single_precision: bool = False,
        n_threads: int = 1,
        isa: str = "",
    ) -> Solver: ...
    def sweep(self) -> tuple[float, int]:
        """Try every entry once; return the change of the loss and the number of steps taken."""

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """A copy of A and b as one flat (m, q, p + 1), b last."""

    @property
    def row_trials(self) -> int:
        """Trials so far, counted once per row."""

    @property
    def slow_row_trials(self) -> int:
        """Those of `row_trials` that crossed a breakpoint and took the O(m) path."""

BLOCK_ROWS: int

def member_values(
    x: NDArray[np.float64],
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    *,
    floor: float,
    isa: str = "",
) -> NDArray[np.float64]:
    """Return the member values |A x - b|^2, at least the floor, of every row: (n, m)."""

LABEL_ONE: int

def grow_forest(
    bins: NDArray[np.uint8],
    labels: NDArray[np.uint16],
    *,
    n_trees: int,
    max_features: int,
    min_leaf: int,
    seed: int,
    n_threads: int = 1,
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.uint8],
    NDArray[np.int32],
    NDArray[np.float32],
    NDArray[np.float64],
]:
    """Return first_node, feature, threshold, child, value and the out-of-bag scores."""

def forest_scores(
    bins: NDArray[np.uint8],
    first_node: NDArray[np.int64],
    feature: NDArray[np.int32],
    threshold: NDArray[np.uint8],
    child: NDArray[np.int32],
    value: NDArray[np.float32],
    *,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Return the mean value of every row of bins (p, n) over all trees."""

NEIGHBORS: int

def nearest_products(
    rows: NDArray[Any],
    references: NDArray[Any],
    *,
    skip: NDArray[np.int64] | None,
    floor: float,
    n_threads: int = 1,
    isa: str = "",
) -> NDArray[np.float64]:
    """Return for every row the product of (d_i + floor)^(2^-i) over its nearest references.

    Rows and references are both float64 or both float32, which is also the precision of the
    result.
    """

def build_info() -> BuildInfo:
    """Return how the kernel was compiled, and what this CPU runs of it."""
