"""The compiled kernel: CPM by the interval method, and member values."""

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

class BuildInfo(TypedDict):
    compiler: str
    flags: str
    instruction_sets: list[str]
    runs_here: list[str]
    chosen: str

class Solver:
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
    def sweep(self) -> tuple[float, int]: ...
    @property
    def coefficients(self) -> NDArray[np.float64]: ...
    @property
    def row_trials(self) -> int: ...
    @property
    def slow_row_trials(self) -> int: ...

class Shard:
    def __new__(
        cls,
        x: NDArray[np.float64],
        group: NDArray[np.int32],
        group_weight: NDArray[np.float64],
        n_components: int,
        *,
        alpha: float,
        floor: float,
        step_a: float,
        step_b: float,
        single_precision: bool = False,
        n_threads: int = 1,
        isa: str = "",
    ) -> Shard: ...
    def restart(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> None: ...
    def visit(self, member: int, settled: bytes, presumed: bytes) -> NDArray[np.float64]: ...

BLOCK_ROWS: int

def member_values(
    x: NDArray[np.float64],
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    *,
    floor: float,
    isa: str = "",
) -> NDArray[np.float64]: ...
def build_info() -> BuildInfo: ...
