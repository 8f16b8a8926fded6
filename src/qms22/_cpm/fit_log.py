"""Progress bar, log and checkpoint of running fits."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any

from qms22 import __version__
from qms22._cpm.checkpoint import Checkpoint
from qms22._cpm.sweeps import FitState, SweepListener
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


@dataclass
class FitReporting:
    """Reports sweeps of fits that run in any number of threads: to a bar, a log, a checkpoint.

    Once the fits have started, `states` has where to start each (None for the starting point),
    `n_iter` its sweeps made and `losses` its last loss.
    """

    verbose: bool  # whether to show a bar
    log: str | PathLike[str] | None  # a file to append lines of JSON to
    checkpoint: str | PathLike[str] | None  # a file for the states of the fits
    about: Mapping[str, Any]  # the estimator, in the first line of the log
    _lock: Lock = field(default_factory=Lock)

    @contextmanager
    def start(self, plan: FitPlan) -> Iterator[None]:
        """Report fits while the block runs."""
        self._plan = plan
        self._saved: Checkpoint | None = None
        self.states: Sequence[FitState | None] = [None] * plan.n_fits
        if self.checkpoint is not None:
            self._saved = Checkpoint(Path(self.checkpoint), plan.fingerprint(), plan.n_fits)
            self.states = [*self._saved.states]
        self.n_iter = [state.n_iter if state else 0 for state in self.states]
        self.losses = [state.loss if state else None for state in self.states]
        self._n_before = sum(self.n_iter)
        n_sweeps = plan.n_fits * plan.max_iter
        with progress_bar("sweeps", n_sweeps, enabled=self.verbose) as self._show:
            self._begin = time.perf_counter()
            facts = {**self.about, "rows": plan.n_rows, **plan.facts, "sweeps": self.n_iter}
            self._write("start", version=__version__, **facts)
            event = {"event": "end"}
            try:
                yield
                if self._saved is not None:
                    self._saved.write()
            except BaseException as error:
                event = {"event": "failed", "error": f"{type(error).__name__}: {error}"}
                if self._saved is not None:
                    with suppress(OSError):  # the first error counts
                        self._saved.write()
                raise
            finally:
                seconds = time.perf_counter() - self._begin
                self._write(**event, seconds=seconds, sweeps=self.n_iter, losses=self.losses)

    def listener(self, number: int) -> SweepListener | None:
        """Return the listener of a fit, by its number; None if nothing is reported."""
        is_silent = not self.verbose and self.log is None and self.checkpoint is None
        return None if is_silent else partial(self.report, number)

    def report(self, number: int, state: FitState, seconds: float | None = None) -> None:
        """Report a sweep of a fit, or without `seconds` one that has ended in another process."""
        with self._lock:
            self.n_iter[number], self.losses[number] = state.n_iter, state.loss
            n_made = sum(self.n_iter) - self._n_before
            rate = n_made * self._plan.n_rows / (time.perf_counter() - self._begin)
            self._show(self._n_before + n_made, sweep_words(state.loss, rate))
            self._write(
                "sweep",
                fit=number,
                sweep=state.n_iter,
                loss=state.loss,
                accepted=state.accepted,
                seconds=seconds,
                rows_per_second=seconds and self._plan.n_rows / seconds,
                row_trials_per_second=seconds and self._plan.n_rows * self._plan.n_trials / seconds,
            )
            if self._saved is not None:
                self._saved.update(number, state)

    def _write(self, event: str, **facts: Any) -> None:
        """Append a line to the log, if there is one."""
        if self.log is None:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"event": event, "time": now, **facts}, default=str)
        try:
            with Path(self.log).open("ab") as file:
                file.write(f"{line}\n".encode())
        except OSError as error:
            raise OSError(f"cannot write the log {str(self.log)!r}: {error.strerror}") from error
