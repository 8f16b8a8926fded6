"""The GPU behind the interface of `qms22._cpm.backends`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import numpy as np

from qms22._cpm.cuda.fit_memory import FitMemory, allocate_fits, bytes_of_fits
from qms22._cpm.cuda.kernel import ROWS_OF_CLUSTER, SLOTS, Shape, choose_shape, kernel_of
from qms22._cpm.cuda.scores import CudaMembers
from qms22._cpm.members import MemberFunctions
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.sweeps import Fit, FitState
from qms22._runtime.chunks import VALUES_ON_GPU, row_chunks
from qms22._runtime.devices import describe_gpu, free_bytes, need_cupy, require_memory

# A launch takes at most about half a second: Ctrl-C works between launches.
_ROW_TRIALS_PER_LAUNCH = 5e10

# Rows of the host are copied to the GPU in chunks of about 64 MB; larger ones are not faster.
_VALUES_FROM_HOST = 2**23
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
        self._floor = options.floor

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

    def members(self, number: int) -> MemberFunctions:
        """Return the member functions of a fit so far."""
        fit = self._fits[number]
        return MemberFunctions.of(fit.coefficients.get() * fit.unit, self._floor)


def _until_still(fit: FitMemory, n_sweeps: int) -> list[SweepResult]:
    changes = fit.arrays["change"][:n_sweeps].tolist()
    accepted = fit.arrays["accepted"][:n_sweeps].tolist()
    n_made = accepted.index(0) + 1 if 0 in accepted else n_sweeps
    return list(zip(changes, accepted, strict=True))[:n_made]


class CudaBackend:
    """Fits and scores on the current GPU."""

    device: ClassVar[str] = "cuda"
    uses_threads: ClassVar[bool] = False  # launches of several threads would wait for each other

    def solve(self, fits: Iterable[Fit], options: SolverOptions) -> list[FitState]:
        """Run fits to their end: small ones side by side, large ones one after the other."""
        fits = list(fits)
        states = [fit.state for fit in fits]
        for numbers in _batches(fits, options):
            batch = _run_together([fits[number] for number in numbers], options)
            for number, state in zip(numbers, batch, strict=True):
                states[number] = state
        return states

    def load(self, members: MemberFunctions) -> CudaMembers:
        """Upload the coefficients of member functions."""
        return CudaMembers(members)

    def row_chunks(self, shape: tuple[int, int], is_on_gpu: bool) -> list[slice]:
        """Cut rows into chunks that take at most half of the free memory of the GPU."""
        # The rows, a mask of finite values, scaled copies; scores, or values of some members.
        bytes_per_row = 8 * (5 * shape[1] + 64)
        n_rows = free_bytes() // 2 // bytes_per_row
        n_values = VALUES_ON_GPU if is_on_gpu else _VALUES_FROM_HOST
        return row_chunks(shape, min(n_values, n_rows * shape[1]))


def _run_together(fits: Sequence[Fit], options: SolverOptions) -> list[FitState]:
    """Run fits that have made the same number of sweeps; return their last states."""
    n_left = options.max_iter - fits[0].state.n_iter
    n_per_launch = 1
    if all(fit.on_sweep is None for fit in fits):
        n_per_launch = int(_ROW_TRIALS_PER_LAUNCH / sum(fit.n_row_trials for fit in fits))
        n_per_launch = max(1, min(n_left, n_per_launch))
    on_gpu = CudaFits(fits, options, n_per_launch)
    states = [fit.state for fit in fits]
    while n_left and any(state.can_improve for state in states):
        n_sweeps = min(n_per_launch, n_left)
        begin = time.perf_counter()
        made = on_gpu.run(n_sweeps)
        seconds = time.perf_counter() - begin
        for place, fit in enumerate(fits):
            if not states[place].can_improve:  # finished in an earlier launch
                continue
            changes, accepted = zip(*made[place], strict=True)
            losses = [*states[place].losses]
            for change in changes:
                losses.append(losses[-1] + change)
            states[place] = FitState(on_gpu.members(place), losses, accepted[-1])
            if fit.on_sweep is not None:
                fit.on_sweep(states[place], seconds)
        n_left -= n_sweeps
    return states


def _batches(fits: Sequence[Fit], options: SolverOptions) -> Iterator[list[int]]:
    """Group the unfinished fits, by number; a batch takes half of the free memory at most."""
    small = []
    for number, fit in enumerate(fits):
        if not fit.state.can_improve or fit.state.n_iter >= options.max_iter:
            continue
        if len(fit.task.X) > ROWS_OF_CLUSTER[options.dtype]:
            yield [number]
        else:
            small.append(number)
    # A batch has made the same number of sweeps. Long fits first: short ones fill the gaps.
    small.sort(key=lambda number: (fits[number].state.n_iter, -fits[number].n_row_trials))
    batch: list[int] = []
    left = free_bytes() // 2
    for number in small:
        needed = bytes_of_fits([fits[number]], options.dtype)
        is_alike = not batch or fits[number].state.n_iter == fits[batch[0]].state.n_iter
        if batch and (needed > left or not is_alike):
            yield batch
            batch, left = [], free_bytes() // 2
        batch.append(number)
        left -= needed
    if batch:
        yield batch
