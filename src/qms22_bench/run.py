"""Run detectors on the folds of data sets, in parallel, and store every result immediately."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config

from qms22.metrics import roc
from qms22_bench import registry
from qms22_bench.datasets import Dataset, Fold
from qms22_bench.store import FitResult, Store

_VERSIONS_OF = ("qms22", "numpy", "scipy", "scikit-learn", "joblib", "pyod")


@dataclass(frozen=True)
class FitJob:
    """One fit to make."""

    dataset: str
    folds: str
    n_folds: int
    fold: Fold
    detector: str
    seed: int
    keep_scores: bool


def run_benchmark(
    store: Store,
    datasets: Sequence[Dataset],
    detectors: Sequence[str],
    seeds: Sequence[int],
    *,
    n_jobs: int = 1,
    backend: str = "loky",
    keep_scores: bool = False,
    show: Callable[[int, int, str], None] | None = None,
) -> int:
    """Make the fits that the store does not have yet; failed fits are tried again.

    Parameters
    ----------
    store : Store
        Receives every result immediately, so a killed run can be continued.
    datasets : sequence of Dataset
    detectors : sequence of str
        Names as in `qms22_bench.registry`.
    seeds : sequence of int
    n_jobs : int
        Parallel fits; -1 uses all cores.
    backend : {"loky", "dask", "ray"}
        Where joblib runs the fits: processes of this machine, or a cluster.
    keep_scores : bool
        Whether to keep the scores of every row, for ROC curves.
    show : callable, optional
        Called at the start and after each fit with the number of fits done, the number of all
        fits, and the name of the last one.

    Returns
    -------
    int
        The number of fits made.
    """
    names = [registry.get_detector(name).name for name in detectors]
    _check_folds(store, datasets)
    done = store.finished(with_scores=keep_scores)
    jobs = [
        job
        for job in _all_jobs(datasets, names, seeds, keep_scores)
        if (job.dataset, job.fold.number, job.detector, job.seed) not in done
    ]
    # Long fits first, so that no core is idle at the end.
    jobs.sort(key=lambda job: -job.fold.normal.size)
    if show is not None:
        show(0, len(jobs), "")
    if not jobs:
        return 0
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    run = store.begin_run(_now(), command, describe_machine(), describe_versions())
    for number, result in enumerate(_execute(jobs, n_jobs, backend), start=1):
        store.add(run, result)
        if show is not None:
            show(number, len(jobs), f"{result.detector} on {result.dataset}")
    return len(jobs)


def run_job(job: FitJob) -> FitResult:
    """Make one fit; an error becomes part of the result."""
    fold = job.fold
    spec = registry.get_detector(job.detector)
    detector = spec.build(job.seed)
    known = {
        "dataset": job.dataset,
        "fold": fold.number,
        "detector": job.detector,
        "seed": job.seed,
        "folds": job.folds,
        "n_folds": job.n_folds,
        "n_normal": len(fold.normal),
        "n_unlabeled": len(fold.unlabeled),
        "n_outliers": int(fold.is_outlier.sum()),
        "n_features": fold.normal.shape[1],
        "parameters": _describe_parameters(detector),
    }
    try:
        memory = _PeakMemory()
        begin = time.process_time()
        registry.fit(detector, fold.normal, fold.unlabeled)
        fitted = time.process_time()
        scores = registry.score(detector, fold.unlabeled)
        scored = time.process_time()
        auc = roc(fold.is_outlier, scores).auc
    except Exception as error:  # an error of one detector must not stop the run
        words = str(error).splitlines() or [""]
        return FitResult(**known, finished=_now(), error=f"{type(error).__name__}: {words[0]}")
    return FitResult(
        **known,
        finished=_now(),
        auc=auc,
        fit_seconds=fitted - begin,
        score_seconds=scored - fitted,
        peak_megabytes=memory.megabytes(),
        is_outlier=fold.is_outlier if job.keep_scores else None,
        scores=scores if job.keep_scores else None,
    )


def describe_machine() -> dict[str, Any]:
    """Return the processor, cores, system and Python version of this machine."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def describe_versions() -> dict[str, str]:
    """Return the versions of the packages that results depend on."""
    versions = {}
    for name in _VERSIONS_OF:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _all_jobs(
    datasets: Iterable[Dataset], detectors: Sequence[str], seeds: Sequence[int], keep_scores: bool
) -> Iterator[FitJob]:
    for dataset in datasets:
        for fold in dataset.folds():
            for detector in detectors:
                for seed in seeds:
                    yield FitJob(
                        dataset.name,
                        dataset.folds_source,
                        dataset.n_folds,
                        fold,
                        detector,
                        seed,
                        keep_scores,
                    )


def _check_folds(store: Store, datasets: Iterable[Dataset]) -> None:
    """Raise ValueError if the store has results of the same data set on other folds."""
    for dataset in datasets:
        others = store.folds_of(dataset.name) - {dataset.folds_source}
        if others:
            raise ValueError(
                f"{store.path} has results of {dataset.name!r} on other folds ({others.pop()}) "
                f"than this run's ({dataset.folds_source}); use another file"
            )


def _execute(jobs: Sequence[FitJob], n_jobs: int, backend: str) -> Iterator[FitResult]:
    if n_jobs == 1 and backend == "loky":
        yield from map(run_job, jobs)
        return
    with _backend(backend, n_jobs):
        try:
            parallel = Parallel(return_as="generator_unordered")
            yield from parallel(delayed(run_job)(job) for job in jobs)
        except (NotImplementedError, ValueError) as error:
            # Some backends cannot return results one by one; return them in small batches.
            if "generator" not in str(error):
                raise
            size = 64
            for first in range(0, len(jobs), size):
                batch = jobs[first : first + size]
                yield from Parallel()(delayed(run_job)(job) for job in batch)


def _backend(name: str, n_jobs: int) -> Any:
    """Return joblib's configuration of a backend, after starting its cluster."""
    if name == "ray":
        import_module("ray.util.joblib").register_ray()
    if name == "dask":
        # Use the client of this process, or start a local cluster.
        distributed = import_module("dask.distributed")
        try:
            distributed.get_client()
        except ValueError:
            n_workers = None if n_jobs < 0 else n_jobs
            distributed.Client(n_workers=n_workers, threads_per_worker=1)
    return parallel_config(backend=name, n_jobs=n_jobs)


class _PeakMemory:
    """Peak memory of the process since the start, above the start; None except on Linux."""

    def __init__(self) -> None:
        self._before: int | None
        try:
            Path("/proc/self/clear_refs").write_text("5")  # resets the peak
            self._before = self._read("VmRSS")
        except (OSError, StopIteration):
            self._before = None

    def megabytes(self) -> float | None:
        if self._before is None:
            return None
        return max(0, self._read("VmHWM") - self._before) * 1024 / 1e6

    @staticmethod
    def _read(name: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name))


def _describe_parameters(detector: Any) -> str:
    """Return the parameters as JSON; estimators inside a pipeline by their repr."""
    return json.dumps(detector.get_params(deep=False), default=repr, sort_keys=True)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
