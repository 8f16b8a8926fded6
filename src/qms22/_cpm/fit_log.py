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


class FitReporting:
    """Reports sweeps of fits that run in any number of threads: to a bar, a log, a checkpoint.

    The user asked for a bar (`verbose`), a file to append lines of JSON to (`log`) and a file for
    the states of the fits (`checkpoint`); `about` is the estimator, in the first line. Once the
    fits have started, `states` has where to start each (None for the starting point), `n_iter` its
    sweeps made and `losses` its last loss.
    """

    def __init__(
        self,
        *,
        verbose: bool,
        log: str | PathLike[str] | None,
        checkpoint: str | PathLike[str] | None,
        about: Mapping[str, Any],
    ) -> None:
        self._verbose = verbose
        self._log_path = log
        self._checkpoint_path = checkpoint
        self._about = about
        self._lock = Lock()

    @contextmanager
    def start(self, plan: FitPlan) -> Iterator[None]:
        """Report fits while the block runs."""
        self._plan = plan
        self._checkpoint: Checkpoint | None = None
        self.states: Sequence[FitState | None] = [None] * plan.n_fits
        if self._checkpoint_path is not None:
            path = Path(self._checkpoint_path)
            self._checkpoint = Checkpoint(path, plan.fingerprint(), plan.n_fits)
            self.states = [*self._checkpoint.states]
        self.n_iter = [state.n_iter if state else 0 for state in self.states]
        self.losses = [state.loss if state else None for state in self.states]
        self._n_before = sum(self.n_iter)
        n_sweeps = plan.n_fits * plan.max_iter
        with ExitStack() as stack:
            self._log = stack.enter_context(_open_log(self._log_path))
            bar = progress_bar("sweeps", n_sweeps, enabled=self._verbose)
            self._show = stack.enter_context(bar)
            self._begin = time.perf_counter()
            self._log(
                "start",
                version=__version__,
                **self._about,
                rows=plan.n_rows,
                **plan.facts,
                sweeps=self.n_iter,
            )
            event = {"event": "end"}
            try:
                yield
                if self._checkpoint is not None:
                    self._checkpoint.write()
            except BaseException as error:
                event = {"event": "failed", "error": f"{type(error).__name__}: {error}"}
                if self._checkpoint is not None:
                    with suppress(OSError):  # the first error counts
                        self._checkpoint.write()
                raise
            finally:
                seconds = time.perf_counter() - self._begin
                self._log(**event, seconds=seconds, sweeps=self.n_iter, losses=self.losses)

    def listener(self, number: int) -> SweepListener | None:
        """Return the listener of a fit, by its number; None if nothing is reported."""
        is_silent = not self._verbose and self._log_path is None and self._checkpoint is None
        return None if is_silent else partial(self._on_sweep, number)

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
