"""Progress bar, log and checkpoint of running fits."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any

from qms22 import __version__
from qms22._cpm.checkpoint import Checkpoint
from qms22._cpm.sweeps import FitState, Solution, SweepListener
from qms22._runtime.stages import progress_bar, sweep_words


@dataclass(frozen=True)
class FitPlan:
    """Facts about fits, for progress bar, log and checkpoint."""

    n_fits: int
    max_iter: int  # sweeps of each fit, at most
    n_rows: int  # of each fit
    n_trials: int  # entries that a sweep visits
    facts: Mapping[str, Any]  # further entries of the first line of the log
    fingerprint: Callable[[], Mapping[str, Any]]  # what the result depends on; see `Checkpoint`


@dataclass(frozen=True)
class FitReporting:
    """Which of progress bar, log and checkpoint the user asked for."""

    verbose: bool  # show a progress bar
    log: str | PathLike[str] | None  # a file for lines of JSON; appended to
    checkpoint: str | PathLike[str] | None  # a file for the states of the fits
    about: Mapping[str, Any]  # the estimator, in the first line

    @contextmanager
    def start(self, plan: FitPlan) -> Iterator[FitReporter]:
        """Report fits while the block runs."""
        checkpoint = None
        if self.checkpoint is not None:
            checkpoint = Checkpoint(Path(self.checkpoint), plan.fingerprint(), plan.n_fits)
        n_sweeps = plan.n_fits * plan.max_iter
        with ExitStack() as stack:
            log = stack.enter_context(_open_log(self.log))
            show = stack.enter_context(progress_bar("sweeps", n_sweeps, enabled=self.verbose))
            is_silent = not self.verbose and self.log is None and checkpoint is None
            reporter = FitReporter(plan, show, log, checkpoint, is_silent)
            begin = time.perf_counter()
            log(
                "start",
                version=__version__,
                **self.about,
                rows=plan.n_rows,
                **plan.facts,
                sweeps=reporter.n_iter,
            )
            event = {"event": "end"}
            try:
                yield reporter
                if checkpoint is not None:
                    checkpoint.write()
            except BaseException as error:
                event = {"event": "failed", "error": f"{type(error).__name__}: {error}"}
                if checkpoint is not None:
                    with suppress(OSError):  # the first error counts
                        checkpoint.write()
                raise
            finally:
                seconds = time.perf_counter() - begin
                log(**event, seconds=seconds, sweeps=reporter.n_iter, losses=reporter.losses)


class FitReporter:
    """Reports sweeps of fits that run in any number of threads: to a bar, a log, a checkpoint.

    `states` has where to start each fit (None for the starting point), `n_iter` its sweeps made and
    `losses` its last loss.
    """

    def __init__(
        self,
        plan: FitPlan,
        show: Callable[[int, str], None],
        log: Callable[..., None],
        checkpoint: Checkpoint | None,
        is_silent: bool,
    ) -> None:
        self._plan = plan
        self._is_silent = is_silent
        self._show = show
        self._log = log
        self._checkpoint = checkpoint
        self._lock = Lock()
        self._begin = time.perf_counter()
        self.states: Sequence[FitState | None] = [None] * plan.n_fits
        if checkpoint is not None:
            self.states = [*checkpoint.states]
        self.n_iter = [state.n_iter if state else 0 for state in self.states]
        self.losses = [state.loss if state else None for state in self.states]
        self._n_before = sum(self.n_iter)

    def listener(self, number: int) -> SweepListener | None:
        """Return the listener of a fit, by its number; None if nothing is reported."""
        return None if self._is_silent else partial(self._on_sweep, number)

    def record_remote_fit(self, number: int, solution: Solution) -> None:
        """Report a fit that ran in another process, once it is finished."""
        members, losses = solution.members, solution.loss.tolist()
        self._on_sweep(number, FitState(members.A, members.b, losses, accepted=0), None)

    def _on_sweep(self, number: int, state: FitState, seconds: float | None) -> None:
        with self._lock:
            self.n_iter[number], self.losses[number] = state.n_iter, state.loss
            n_made = sum(self.n_iter) - self._n_before
            rate = n_made * self._plan.n_rows / (time.perf_counter() - self._begin)
            self._show(self._n_before + n_made, sweep_words(state.loss, rate))
            self._log(
                "sweep",
                fit=number,
                sweep=state.n_iter,
                loss=state.loss,
                accepted=state.accepted,
                seconds=seconds,
                rows_per_second=seconds and self._plan.n_rows / seconds,
                row_trials_per_second=seconds and self._plan.n_rows * self._plan.n_trials / seconds,
            )
            if self._checkpoint is not None:
                self._checkpoint.update(number, state)


@contextmanager
def _open_log(path: str | PathLike[str] | None) -> Iterator[Callable[..., None]]:
    """Open a log; yield a function that appends a line at once, or does nothing without a path."""
    if path is None:
        yield lambda event, **facts: None
        return
    with ExitStack() as stack:
        with _named(path):
            file = stack.enter_context(Path(path).open("ab", buffering=0))

        def log(event: str, **facts: Any) -> None:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = json.dumps({"event": event, "time": now, **facts}, default=str)
            with _named(path):
                file.write(f"{line}\n".encode())

        yield log


@contextmanager
def _named(path: str | PathLike[str]) -> Iterator[None]:
    """Add the path of the log to an OSError."""
    try:
        yield
    except OSError as error:
        raise OSError(f"cannot write the log {str(path)!r}: {error.strerror}") from error
