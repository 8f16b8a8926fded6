"""Independent fits of one detection problem, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from qms22._progress import progress_bar
from qms22._solver import ROWS_PER_THREAD, Solution, SolverOptions, solve
from qms22._task import detection_task


def solve_restarts(
    rows: NDArray[np.float64],
    n_unlabeled: int,
    n_members: int,
    options: SolverOptions,
    seeds: Sequence[int],
    *,
    n_jobs: int = 1,
    verbose: bool = False,
) -> list[Solution]:
    """Solve the task of QMS22 once per seed.

    Parameters
    ----------
    rows : ndarray of shape (n, p)
        The scaled rows of S, then those of T.
    n_unlabeled : int
        The number of rows of S.
    n_members : int
        m.
    options : SolverOptions
        Their number of threads is set here.
    seeds : sequence of int
        Each shuffles T in another way.
    n_jobs : int
        Cores to use: for threads of one fit after the other where there are many rows, else for
        restarts side by side.
    verbose : bool
        Whether to show a progress bar.
    """
    # Where rows are enough for all cores, one fit after the other keeps every core busy to the end
    # and needs the memory of one fit.
    n_workers = 1 if len(rows) >= ROWS_PER_THREAD * n_jobs else min(n_jobs, len(seeds))
    restart = _Restart(
        rows, n_unlabeled, n_members, replace(options, n_threads=n_jobs // n_workers)
    )
    solutions: list[Solution] = []
    n_sweeps = options.max_iter * len(seeds)
    with progress_bar("sweeps", n_sweeps, enabled=verbose) as show:
        if n_workers == 1:
            for seed in seeds:
                solutions.append(restart.run(seed, show, options.max_iter * len(solutions)))
            return solutions
        # The kernel releases the GIL: threads share the rows, processes would copy them.
        parallel = Parallel(
            n_jobs=n_workers, prefer="threads", return_as="generator" if verbose else "list"
        )
        try:
            for solution in parallel(delayed(restart.run)(seed) for seed in seeds):
                solutions.append(solution)
                show(options.max_iter * len(solutions), "")
        except BaseException:
            restart.halt()
            raise
    return solutions


@dataclass
class _Restart:
    """One fit per seed, to be run in any thread or process."""

    rows: NDArray[np.float64]
    n_unlabeled: int
    n_members: int
    options: SolverOptions
    running: list[int] = field(default_factory=list)  # seeds, of the fits in this process
    halted: bool = False

    def run(
        self, seed: int, show: Callable[[int, str], None] | None = None, n_before: int = 0
    ) -> Solution:
        """Fit; `show` is told of every sweep, counted from `n_before`."""

        def on_sweep(n_iter: int, loss: float) -> None:
            if self.halted:
                raise KeyboardInterrupt
            if show is not None:
                show(n_before + n_iter, f"loss {loss:.6g}")

        rng = np.random.RandomState(seed)
        task = detection_task(self.rows, self.n_unlabeled, self.n_members, rng)
        self.running.append(seed)
        try:
            return solve(task, self.options, on_sweep)
        finally:
            self.running.remove(seed)

    def halt(self) -> None:
        """End the fits in other threads of this process, each at its next sweep.

        Waits for them: a thread still in the kernel when the interpreter exits would crash it.
        """
        self.halted = True
        while self.running:
            time.sleep(0.01)
