"""The coordinate perturbation method on a GPU, for one fit or for many in one launch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qms22._cpm.cuda.fit_memory import FitMemory, allocate_fits, bytes_of_fits
from qms22._cpm.cuda.kernel import SLOTS, Shape, choose_shape, kernel_of
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.sweeps import Fit
from qms22._runtime.devices import describe_gpu, need_cupy, require_memory

# The kernel counts rows in 32 bits.
MOST_ROWS = 2_000_000_000

# The change of the loss, and the number of steps taken.
SweepResult = tuple[float, int]


class CudaFits:
    """Fits side by side: a launch makes sweeps of all of them, at most `most_sweeps`.

    Fits that share their rows, of NumPy or CuPy, share a copy of them on the GPU. More than one
    should be small: each gets a part of the GPU.
    """

    def __init__(self, fits: Sequence[Fit], options: SolverOptions, most_sweeps: int = 1) -> None:
        cupy = need_cupy()
        n_rows = max(len(fit.task.X) for fit in fits)
        if n_rows > MOST_ROWS:
            raise ValueError(f"a fit on a GPU has at most {MOST_ROWS:,} rows; got {n_rows:,}")
        require_memory(bytes_of_fits(fits, options.dtype), n_rows, "a fit")
        gpu = describe_gpu(cupy.cuda.Device().id)
        self._shape: Shape = choose_shape(n_rows, options.dtype, gpu, len(fits))
        self._kernel = kernel_of(self._shape, options.dtype)
        self._fits = allocate_fits(fits, options, self._shape.n_blocks, most_sweeps, cupy)
        self._records = cupy.asarray(np.array([fit.record for fit in self._fits]).view(np.uint8))
        self._tagged_sums = cupy.zeros((2, self._shape.n_blocks, SLOTS), dtype=np.uint64)
        self._is_fresh = True

    def launch(self, n_sweeps: int) -> None:
        """Start sweeps without waiting for them."""
        self._tagged_sums.fill(0)
        # A grid is one team; clusters and single blocks have a fit each.
        n_teams = 1 if self._shape.team == "Grid" else len(self._fits)
        arguments = (self._records, np.int32(n_sweeps), np.bool_(self._is_fresh), self._tagged_sums)
        grid, block = (n_teams * self._shape.n_blocks,), (self._shape.n_threads,)
        if self._shape.needs_permission:
            self._kernel.max_dynamic_shared_size_bytes = self._shape.shared_bytes
        self._kernel(grid, block, arguments, shared_mem=self._shape.shared_bytes)
        self._is_fresh = False

    def run(self, n_sweeps: int) -> list[list[SweepResult]]:
        """Make sweeps; return their results, by fit and by sweep.

        A fit ends with the first sweep that takes no step.
        """
        self.launch(n_sweeps)
        return [_until_still(fit, n_sweeps) for fit in self._fits]

    def members(self, number: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return A (m, q, p) and b (m, q) of a fit."""
        fit = self._fits[number]
        both = fit.coefficients.get() * fit.unit
        return np.ascontiguousarray(both[..., :-1]), np.ascontiguousarray(both[..., -1])


def _until_still(fit: FitMemory, n_sweeps: int) -> list[SweepResult]:
    changes = fit.arrays["change"][:n_sweeps].tolist()
    accepted = fit.arrays["accepted"][:n_sweeps].tolist()
    n_made = accepted.index(0) + 1 if 0 in accepted else n_sweeps
    return list(zip(changes, accepted, strict=True))[:n_made]
