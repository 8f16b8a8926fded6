"""Independent fits of one detection problem, side by side."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from qms22._cpm.checkpoint import parameters_of
from qms22._cpm.fit_log import FitPlan, FitReporting
from qms22._cpm.sweeps import (
    ROWS_PER_THREAD,
    FitState,
    Solution,
    SolverOptions,
    SweepListener,
    solve,
    solve_together,
)
from qms22._cpm.task import Task, detection_task
from qms22._runtime.arrays import as_host
from qms22._runtime.chunks import row_chunks


def solve_restarts(
    rows: NDArray[np.float64],
    n_unlabeled: int,
    n_members: int,
    options: SolverOptions,
    seeds: Sequence[int],
    *,
    held_out: Sequence[NDArray[np.intp]] | None = None,
    n_jobs: int = 1,
    reporting: FitReporting | None = None,
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
    held_out : sequence of ndarray of int, optional
        For each seed the positions of the rows of T to treat as unlabeled.
    n_jobs : int
        Cores to use: for threads of one fit after the other where there are many rows, else for
        restarts side by side; jobs of joblib's backend where the user has chosen one.
    reporting : FitReporting, optional
        Who is told of the sweeps.
    """
    # Threads of this process, unless the user has chosen another backend of joblib, such as Dask's
    # or Ray's, whose jobs are no cores of this machine.
    backend, _ = get_active_backend(prefer="threads")
    is_here = getattr(backend, "supports_sharedmem", False)
    # Where rows are enough for all cores, one fit after the other keeps every core busy to the end
    # and needs the memory of one fit.
    one_by_one = options.device == "cuda" or (is_here and len(rows) >= ROWS_PER_THREAD * n_jobs)
    n_workers = 1 if one_by_one else min(n_jobs, len(seeds))
    n_threads = n_jobs // n_workers if is_here else 1
    restart = _Restart(rows, n_unlabeled, n_members, replace(options, n_threads=n_threads))
    nothing: list[NDArray[np.intp] | None] = [None] * len(seeds)
    fits = list(zip(seeds, held_out or nothing, strict=True))
    reporting = reporting or FitReporting()
    with reporting.start(restart.plan(fits, n_workers)) as reporter:
        if options.device == "cuda" and not reporting.every_sweep:
            on_sweeps = reporter.count if reporting.verbose else None
            return solve_together([restart.task(*fit) for fit in fits], options, on_sweeps)
        if n_workers == 1:
            return [
                restart.run(*fit, reporter.states[number], reporter.listener(number))
                for number, fit in enumerate(fits)
            ]
        # The kernel releases the GIL: threads share the rows, processes would copy them.
        one_at_a_time = not is_here and getattr(backend, "supports_return_generator", False)
        parallel = Parallel(
            n_jobs=n_workers, prefer="threads", return_as="generator" if one_at_a_time else "list"
        )
        jobs = (
            delayed(restart.run)(
                *fit, reporter.states[number], reporter.listener(number) if is_here else None
            )
            for number, fit in enumerate(fits)
        )
        solutions: list[Solution] = []
        try:
            for number, solution in enumerate(parallel(jobs)):
                solutions.append(solution)
                if not is_here:
                    reporter.record_remote_fit(number, solution)
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
        self,
        seed: int,
        held_out: NDArray[np.intp] | None,
        state: FitState | None,
        listener: SweepListener | None,
    ) -> Solution:
        """Fit, from `state` on; `listener` is told of every sweep."""

        def on_sweep(state: FitState, seconds: float) -> None:
            if self.halted:
                raise KeyboardInterrupt
            if listener is not None:
                listener(state, seconds)

        task = self.task(seed, held_out)
        self.running.append(seed)
        try:
            return solve(task, self.options, on_sweep, state)
        finally:
            self.running.remove(seed)

    def task(self, seed: int, held_out: NDArray[np.intp] | None) -> Task:
        """Make the task of a seed."""
        rng = np.random.RandomState(seed)
        return detection_task(self.rows, self.n_unlabeled, self.n_members, rng, held_out)

    def plan(
        self, fits: Sequence[tuple[int, NDArray[np.intp] | None]], side_by_side: int
    ) -> FitPlan:
        """Describe the fits of these seeds."""
        n_features = self.rows.shape[1]
        return FitPlan(
            n_fits=len(fits),
            max_iter=self.options.max_iter,
            n_rows=len(self.rows),
            n_trials=self.n_members * self.options.n_components * (n_features + 1),
            facts={
                "unlabeled": self.n_unlabeled,
                "features": n_features,
                "device": self.options.device,
                "fits_side_by_side": side_by_side,
                "threads_per_fit": self.options.n_threads,
            },
            fingerprint=lambda: self._fingerprint(fits),
        )

    def _fingerprint(self, fits: Sequence[tuple[int, NDArray[np.intp] | None]]) -> dict[str, Any]:
        """Tell what the result depends on, in the words of the estimators' parameters."""
        shuffles = blake2b()
        for seed, held_out in fits:
            shuffles.update(str(seed).encode())
            shuffles.update(b"" if held_out is None else held_out.tobytes())
        rows = blake2b()
        for chunk in row_chunks(self.rows.shape):
            rows.update(as_host(self.rows[chunk]).tobytes())
        return {
            **parameters_of(self.n_members, self.options),
            "random_state": shuffles.hexdigest(),
            "number of rows": [self.n_unlabeled, len(self.rows), self.rows.shape[1]],
            "rows or their scaling": rows.hexdigest(),
        }

    def halt(self) -> None:
        """End the fits in other threads of this process, each at its next sweep.

        Waits for them: a thread still in the kernel when the interpreter exits would crash it.
        """
        self.halted = True
        while self.running:
            time.sleep(0.01)
