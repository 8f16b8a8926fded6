"""Independent fits of one detection problem, side by side."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from qms22 import __version__
from qms22._cpm.backends import BACKENDS, solve_all
from qms22._cpm.fit_log import FitPlan, FitReporting
from qms22._cpm.native import ROWS_PER_THREAD
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.sweeps import Fit, FitState, SweepListener
from qms22._cpm.task import detection_task
from qms22._runtime.arrays import as_host


@dataclass(frozen=True, eq=False)
class Taken:
    """What one of several fits learns from: positions of rows and columns."""

    unlabeled: NDArray[np.intp]
    known: NDArray[np.intp]
    columns: NDArray[np.intp]


def solve_restarts(
    rows: NDArray[np.float64],
    n_unlabeled: int,
    n_members: int,
    options: SolverOptions,
    seeds: Sequence[int],
    *,
    taken: Sequence[Taken] | None = None,
    n_jobs: int,
    reporting: FitReporting,
) -> list[FitState]:
    """Solve the task of QMS22 once per seed; each shuffles T differently.

    `rows` are the scaled rows of S, then those of T; `taken` has what to learn from for each seed,
    all of them if it is missing. `n_jobs` cores are used with many rows for the threads of one fit
    after the other, else for restarts side by side; or jobs of the joblib backend that the user has
    chosen. Member functions are of all columns.
    """
    backend, _ = get_active_backend(prefer="threads")
    is_here = getattr(backend, "supports_sharedmem", False)  # in threads of this process
    # With enough rows for all cores, one fit after the other keeps every core busy to the end and
    # needs the memory of one fit.
    has_many_rows = is_here and len(rows) >= ROWS_PER_THREAD * n_jobs
    is_one_by_one = has_many_rows or not BACKENDS[options.device].uses_threads
    n_workers = 1 if is_one_by_one else min(n_jobs, len(seeds))
    options = replace(options, n_threads=n_jobs // n_workers if is_here else 1)
    restarts = _Restarts(rows, n_unlabeled, n_members, options, seeds, taken)
    with reporting.start(restarts.plan(n_workers)):
        todo = [
            (number, reporting.listener(number) if is_here or n_workers == 1 else None, state)
            for number, state in enumerate(reporting.states)
        ]
        if n_workers == 1:
            return restarts.spread(solve_all((restarts.fit(*fit) for fit in todo), options))
        # The kernel releases the GIL: threads share the rows, processes would copy them. Jobs
        # elsewhere, such as Ray's, may return results one at a time.
        is_lazy = not is_here and getattr(backend, "supports_return_generator", False)
        kind = "generator" if is_lazy else "list"
        parallel = Parallel(n_jobs=n_workers, prefer="threads", return_as=kind)
        solutions: list[FitState] = []
        try:
            for solution in parallel(delayed(restarts.run)(*fit) for fit in todo):
                solutions.append(solution)
                if not is_here:
                    reporting.report(len(solutions) - 1, solution)
        except BaseException:
            # Fits in other threads end at their next sweep. A thread that is still in the kernel
            # when the interpreter exits would crash it.
            restarts.halted = True
            while restarts.running:
                time.sleep(0.01)
            raise
        return restarts.spread(solutions)


@dataclass
class _Restarts:
    """One fit per seed, to be run in any thread or process."""

    rows: NDArray[np.float64]
    n_unlabeled: int
    n_members: int
    options: SolverOptions
    seeds: Sequence[int]
    taken: Sequence[Taken] | None
    running: list[int] = field(default_factory=list)  # numbers of the fits in this process
    halted: bool = False

    def fit(self, number: int, on_sweep: SweepListener | None, state: FitState | None) -> Fit:
        """Return the fit of this number."""
        rows, n_unlabeled = self.rows, self.n_unlabeled
        if self.taken is not None:
            taken = self.taken[number]
            n_unlabeled = len(taken.unlabeled)
            rows = rows[np.ix_(np.concatenate([taken.unlabeled, taken.known]), taken.columns)]
        rng = np.random.RandomState(self.seeds[number])
        task = detection_task(rows, n_unlabeled, self.n_members, rng)
        return Fit.of(task, self.options, on_sweep, state)

    def spread(self, solutions: list[FitState]) -> list[FitState]:
        """Return solutions whose member functions take rows with all columns."""
        if self.taken is None:
            return solutions
        spread = []
        for solution, taken in zip(solutions, self.taken, strict=True):
            of_taken = solution.members.A
            A = np.zeros((*of_taken.shape[:2], self.rows.shape[1]))
            A[..., taken.columns] = of_taken
            spread.append(replace(solution, members=replace(solution.members, A=A)))
        return spread

    def run(self, number: int, listener: SweepListener | None, state: FitState | None) -> FitState:
        """Run the fit of this number in one of several threads or processes."""

        def on_sweep(state: FitState, seconds: float) -> None:
            if self.halted:
                raise KeyboardInterrupt
            if listener is not None:
                listener(state, seconds)

        self.running.append(number)
        try:
            return solve_all([self.fit(number, on_sweep, state)], self.options)[0]
        finally:
            self.running.remove(number)

    def plan(self, n_workers: int) -> FitPlan:
        """Describe the fits for progress bar, log and checkpoint."""
        n_rows, n_features = self.rows.shape
        if self.taken is not None:
            first = self.taken[0]
            n_rows, n_features = len(first.unlabeled) + len(first.known), len(first.columns)
        return FitPlan(
            n_fits=len(self.seeds),
            max_iter=self.options.max_iter,
            n_rows=n_rows,
            n_trials=self.n_members * self.options.n_components * (n_features + 1),
            facts={
                "unlabeled": self.n_unlabeled,
                "features": self.rows.shape[1],
                "device": self.options.device,
                "fits_side_by_side": n_workers,
                "threads_per_fit": self.options.n_threads,
            },
            fingerprint=self._fingerprint,
        )

    def _fingerprint(self) -> dict[str, Any]:
        """Return what the result depends on, by the names of the estimators' parameters."""
        shuffles = blake2b(str(self.seeds).encode())
        for taken in self.taken or ():
            for places in (taken.unlabeled, taken.known, taken.columns):
                shuffles.update(places.tobytes())
        rows = blake2b(np.ravel(as_host(self.rows)).data)
        parameters = asdict(self.options)
        del parameters["n_threads"]
        return {
            "version of qms22": __version__,
            "n_members": self.n_members,
            **parameters,
            "random_state": shuffles.hexdigest(),
            "number of rows": [self.n_unlabeled, len(self.rows), self.rows.shape[1]],
            "rows or their scaling": rows.hexdigest(),
        }
