"""The coordinate perturbation method on a GPU, for one fit or for many in one launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22._cpm.cuda.kernel import ROWS_OF_CLUSTER, SLOTS, Shape, choose_shape, kernel_of
from qms22._cpm.cuda.memory import FitMemory, bytes_of_fits
from qms22._cpm.task import CpmRules, Task
from qms22._runtime.devices import describe_gpu, free_bytes, need_cupy, require_memory

# Rows are counted in 32 bits there.
MOST_ROWS = 2_000_000_000

# Launches last about half a second at most: Ctrl-C is heard between them.
_ROW_TRIALS_PER_LAUNCH = 5e10

Sweep = tuple[float, int]


@dataclass(frozen=True)
class Start:
    """A fit before its first sweep.

    Parameters
    ----------
    task : Task
        Its rows may be NumPy's or CuPy's.
    A, b : ndarray of shape (m, q, p) and (m, q)
        Where to start.
    rules : CpmRules
    """

    task: Task
    A: NDArray[np.float64]
    b: NDArray[np.float64]
    rules: CpmRules

    @property
    def sizes(self) -> tuple[Task, int]:
        """The task, and the number of components."""
        return self.task, self.A.shape[1]


class CudaFits:
    """Fits side by side: a launch makes sweeps of all of them.

    Parameters
    ----------
    starts : sequence of Start
        Those that share their rows share a copy of them on the GPU. More than one should be small:
        each gets a part of the GPU.
    precision : {"float64", "float32"}
    most_sweeps : int
        Sweeps per launch, at most.
    """

    def __init__(self, starts: Sequence[Start], precision: str, most_sweeps: int = 1) -> None:
        cupy = need_cupy()
        n_rows = max(len(start.task.X) for start in starts)
        if n_rows > MOST_ROWS:
            raise ValueError(f"a fit on a GPU has at most {MOST_ROWS:,} rows; got {n_rows:,}")
        needed = bytes_of_fits([start.sizes for start in starts], precision)
        require_memory(needed, n_rows, "a fit")
        gpu = describe_gpu(cupy.cuda.Device().id)
        self._shape: Shape = choose_shape(n_rows, precision, gpu, len(starts))
        self._kernel = kernel_of(self._shape, precision)
        columns: dict[int, Any] = {}
        self._fits = [
            FitMemory.allocate(
                start.task,
                start.A,
                start.b,
                start.rules,
                precision,
                n_blocks=self._shape.n_blocks,
                most_sweeps=most_sweeps,
                xp=cupy,
                columns=columns,
            )
            for start in starts
        ]
        self._records = cupy.asarray(np.array([fit.record for fit in self._fits]).view(np.uint8))
        self._letters = cupy.zeros((2, self._shape.n_blocks, SLOTS), dtype=np.uint64)
        self._is_fresh = True

    def launch(self, n_sweeps: int) -> None:
        """Start sweeps, without waiting for them."""
        self._letters.fill(0)
        # A grid is one team; clusters and single blocks have a fit each.
        n_teams = 1 if self._shape.team == "Grid" else len(self._fits)
        arguments = (self._records, np.int32(n_sweeps), np.bool_(self._is_fresh), self._letters)
        grid, block = (n_teams * self._shape.n_blocks,), (self._shape.n_threads,)
        if self._shape.needs_permission:
            self._kernel.max_dynamic_shared_size_bytes = self._shape.shared_bytes
        self._kernel(grid, block, arguments, shared_mem=self._shape.shared_bytes)
        self._is_fresh = False

    def run(self, n_sweeps: int) -> list[list[Sweep]]:
        """Make sweeps; give the change of the loss and the steps taken, by fit and by sweep.

        A fit ends with the first sweep that takes no step.
        """
        self.launch(n_sweeps)
        return [_until_still(fit, n_sweeps) for fit in self._fits]

    def members(self, number: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give A (m, q, p) and b (m, q) of a fit."""
        fit = self._fits[number]
        both = fit.coefficients.get() * fit.unit
        return np.ascontiguousarray(both[..., :-1]), np.ascontiguousarray(both[..., -1])


def _until_still(fit: FitMemory, n_sweeps: int) -> list[Sweep]:
    changes = fit.arrays["change"][:n_sweeps].tolist()
    accepted = fit.arrays["accepted"][:n_sweeps].tolist()
    n_made = accepted.index(0) + 1 if 0 in accepted else n_sweeps
    return list(zip(changes, accepted, strict=True))[:n_made]


class CudaSolver:
    """One fit, one sweep at a time, with the interface that `qms22._cpm.sweeps.solve` drives.

    Parameters
    ----------
    task, A, b, rules, precision
        As of `NativeSolver`; the rows may be CuPy's.
    """

    def __init__(
        self,
        task: Task,
        A: NDArray[np.float64],
        b: NDArray[np.float64],
        rules: CpmRules,
        precision: str,
    ) -> None:
        self._fits = CudaFits([Start(task, A, b, rules)], precision)

    def sweep(self) -> Sweep:
        """Visit every entry once; return the change of the loss and the number of steps taken."""
        return self._fits.run(1)[0][0]

    @property
    def A(self) -> NDArray[np.float64]:
        """Coefficients of shape (m, q, p)."""
        return self._fits.members(0)[0]

    @property
    def b(self) -> NDArray[np.float64]:
        """Offsets of shape (m, q)."""
        return self._fits.members(0)[1]


@dataclass(frozen=True)
class Fitted:
    """What became of a `Start`: A, b, and the change of the loss by sweep."""

    A: NDArray[np.float64]
    b: NDArray[np.float64]
    changes: list[float]


def fit_all(
    starts: Sequence[Start],
    precision: str,
    max_sweeps: int,
    on_sweeps: Callable[[int], None] | None = None,
) -> list[Fitted]:
    """Run fits to their end: small ones side by side, large ones one after the other.

    Parameters
    ----------
    starts : sequence of Start
    precision : {"float64", "float32"}
    max_sweeps : int
        Sweeps of each fit, at most.
    on_sweeps : callable, optional
        Called after each launch with the number of sweeps made so far, of all fits.
    """
    fitted: dict[int, Fitted] = {}
    n_before = 0
    for numbers in _batches(starts, precision):
        batch = [starts[number] for number in numbers]
        n_together = max(1, int(_ROW_TRIALS_PER_LAUNCH / sum(map(_row_trials, batch))))
        n_together = min(max_sweeps, n_together if on_sweeps is None else 1)
        fits = CudaFits(batch, precision, n_together)
        sweeps: list[list[Sweep]] = [[] for _ in batch]
        for first in range(0, max_sweeps, n_together):
            made = fits.run(min(n_together, max_sweeps - first))
            for so_far, more in zip(sweeps, made, strict=True):
                if not so_far or so_far[-1][1]:
                    so_far += more
            if on_sweeps is not None:
                on_sweeps(n_before + sum(map(len, sweeps)))
            if not any(so_far[-1][1] for so_far in sweeps):
                break
        n_before += sum(map(len, sweeps))
        for place, number in enumerate(numbers):
            changes = [change for change, _ in sweeps[place]]
            fitted[number] = Fitted(*fits.members(place), changes)
    return [fitted[number] for number in range(len(starts))]


def _batches(starts: Sequence[Start], precision: str) -> Iterator[list[int]]:
    """Numbers of the fits that go together: they take half of the GPU's free memory at most."""
    small = []
    for number, start in enumerate(starts):
        if len(start.task.X) > ROWS_OF_CLUSTER[precision]:
            yield [number]
        else:
            small.append(number)
    # Long ones first: the others fill the gaps.
    small.sort(key=lambda number: -_row_trials(starts[number]))
    batch: list[int] = []
    left = free_bytes() // 2
    for number in small:
        needed = bytes_of_fits([starts[number].sizes], precision)
        if batch and needed > left:
            yield batch
            batch, left = [], free_bytes() // 2
        batch.append(number)
        left -= needed
    if batch:
        yield batch


def _row_trials(start: Start) -> int:
    return int(len(start.task.X) * (start.A.size + start.b.size))
