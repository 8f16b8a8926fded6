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
from qms22._cpm.backends import ROWS_PER_THREAD, choose_backend, solve_all
from qms22._cpm.fit_log import FitPlan, FitReporting
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.sweeps import Fit, FitState, Solution, SweepListener
from qms22._cpm.task import detection_task
from qms22._runtime.arrays import as_host
from qms22._runtime.chunks import row_chunks


def solve_restarts(
    rows: NDArray[np.float64],
    n_unlabeled: int,
    n_members: int,
    options: SolverOptions,
    seeds: Sequence[int],
    *,
    held_out: Sequence[NDArray[np.intp] | None] | None = None,
    n_jobs: int,
    reporting: FitReporting,
) -> list[Solution]:
    """Solve the task of QMS22 once per seed; each shuffles T differently.

    `rows` are the scaled rows of S, then those of T. `held_out` has for each seed the positions of
    the rows of T to treat as unlabeled. `n_jobs` cores are used with many rows for the threads of
    one fit after the other, else for restarts side by side; or jobs of the joblib backend that the
    user has chosen.
    """
    backend, _ = get_active_backend(prefer="threads")
    is_here = getattr(backend, "supports_sharedmem", False)  # in threads of this process
    # With enough rows for all cores, one fit after the other keeps every core busy to the end and
    # needs the memory of one fit.
    has_many_rows = is_here and len(rows) >= ROWS_PER_THREAD * n_jobs
    is_one_by_one = has_many_rows or not choose_backend(options.device, options.solver).uses_threads
    n_workers = 1 if is_one_by_one else min(n_jobs, len(seeds))
    options = replace(options, n_threads=n_jobs // n_workers if is_here else 1)
    held_out = held_out or [None] * len(seeds)
    restarts = _Restarts(rows, n_unlabeled, n_members, options, seeds, held_out)
    with reporting.start(restarts.plan(n_workers)):
        todo = [
            (number, reporting.listener(number) if is_here or n_workers == 1 else None, state)
            for number, state in enumerate(reporting.states)
        ]
        if n_workers == 1:
            return solve_all((restarts.fit(*fit) for fit in todo), options)
        # The kernel releases the GIL: threads share the rows, processes would copy them. Jobs
        # elsewhere, such as Ray's, may return results one at a time.
        is_lazy = not is_here and getattr(backend, "supports_return_generator", False)
        kind = "generator" if is_lazy else "list"
        parallel = Parallel(n_jobs=n_workers, prefer="threads", return_as=kind)
        solutions: list[Solution] = []
        try:
            for solution in parallel(delayed(restarts.run)(*fit) for fit in todo):
                solutions.append(solution)
                if not is_here:
                    reporting.record_remote_fit(len(solutions) - 1, solution)
        except BaseException:
            restarts.halt()
            raise
        return solutions


@dataclass
class _Restarts:
    """One fit per seed, to be run in any thread or process."""

    rows: NDArray[np.float64]
    n_unlabeled: int
    n_members: int
    options: SolverOptions
    seeds: Sequence[int]
    held_out: Sequence[NDArray[np.intp] | None]
    running: list[int] = field(default_factory=list)  # numbers of the fits in this process
    halted: bool = False

    def fit(self, number: int, on_sweep: SweepListener | None, state: FitState | None) -> Fit:
        """Return the fit of this number."""
        rng, held_out = np.random.RandomState(self.seeds[number]), self.held_out[number]
        task = detection_task(self.rows, self.n_unlabeled, self.n_members, rng, held_out)
        return Fit.of(task, self.options, on_sweep, state)

    def run(self, number: int, listener: SweepListener | None, state: FitState | None) -> Solution:
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
        n_features = self.rows.shape[1]
        return FitPlan(
            n_fits=len(self.seeds),
            max_iter=self.options.max_iter,
            n_rows=len(self.rows),
            n_trials=self.n_members * self.options.n_components * (n_features + 1),
            facts={
                "unlabeled": self.n_unlabeled,
                "features": n_features,
                "device": self.options.device,
                "fits_side_by_side": n_workers,
                "threads_per_fit": self.options.n_threads,
            },
            fingerprint=self._fingerprint,
        )

    def _fingerprint(self) -> dict[str, Any]:
        """Return what the result depends on, by the names of the estimators' parameters."""
        shuffles = blake2b()
        for seed, held_out in zip(self.seeds, self.held_out, strict=True):
            shuffles.update(str(seed).encode())
            shuffles.update(b"" if held_out is None else held_out.tobytes())
        rows = blake2b()
        for chunk in row_chunks(self.rows.shape):
            rows.update(as_host(self.rows[chunk]).tobytes())
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

    def halt(self) -> None:
        """End the fits in other threads of this process, each at its next sweep.

        Waits for them: a thread still in the kernel when the interpreter exits would crash it.
        """
        self.halted = True
        while self.running:
            time.sleep(0.01)
