"""Results on disk: one SQLite file, one row for every fit.

SQLite, because a row is completely on disk when `add` returns, several runs can write to one file,
and one line reads it:

    pandas.read_sql("select * from results", sqlite3.connect("results.sqlite"))
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

# Wait up to a minute for another writer's lock.
_LOCK_SECONDS = 60.0

_SCHEMA = """
create table if not exists runs (
    run integer primary key,
    started text not null,
    command text not null,
    machine text not null,
    versions text not null
);
create table if not exists results (
    dataset text not null,
    fold integer not null,
    detector text not null,
    seed integer not null,
    run integer not null references runs,
    finished text not null,
    status text not null check (status in ('ok', 'error')),
    error text,
    auc real,
    fit_seconds real,
    score_seconds real,
    peak_megabytes real,
    n_normal integer not null,
    n_unlabeled integer not null,
    n_outliers integer not null,
    n_features integer not null,
    folds text not null,
    n_folds integer not null,
    parameters text not null,
    primary key (dataset, fold, detector, seed)
);
create table if not exists scores (
    dataset text not null,
    fold integer not null,
    detector text not null,
    seed integer not null,
    is_outlier blob not null,
    scores blob not null,
    primary key (dataset, fold, detector, seed)
);
"""

Key = tuple[str, int, str, int]


@dataclass(frozen=True)
class FitResult:
    """The result of one fit: one detector, one fold, one seed.

    Parameters
    ----------
    dataset, fold, detector, seed
        The key of the record.
    folds : str
        Where the folds come from.
    n_folds : int
        Number of folds of the data set.
    n_normal, n_unlabeled, n_outliers, n_features : int
        Size of the encoded fold.
    parameters : str
        Parameters of the detector, as JSON.
    finished : str
        The time, in UTC.
    error : str, optional
        The error message of a failed fit, which has none of the following values.
    auc : float, optional
        Raw: below 0.5 if outliers score lower than normal rows.
    fit_seconds, score_seconds : float, optional
        CPU time.
    peak_megabytes : float, optional
        Peak memory above that before the fit; None if the system does not report it.
    is_outlier, scores : ndarray, optional
        The truth and the scores of every unlabeled row, if they are kept.
    """

    dataset: str
    fold: int
    detector: str
    seed: int
    folds: str
    n_folds: int
    n_normal: int
    n_unlabeled: int
    n_outliers: int
    n_features: int
    parameters: str
    finished: str
    error: str | None = None
    auc: float | None = None
    fit_seconds: float | None = None
    score_seconds: float | None = None
    peak_megabytes: float | None = None
    is_outlier: NDArray[np.bool_] | None = field(default=None, repr=False)
    scores: NDArray[np.float64] | None = field(default=None, repr=False)

    @property
    def key(self) -> Key:
        """The key of the record."""
        return self.dataset, self.fold, self.detector, self.seed


_COLUMNS = [entry.name for entry in fields(FitResult) if entry.name not in ("is_outlier", "scores")]


class Store:
    """A file of results; a context manager.

    Parameters
    ----------
    path : str or Path
        Created if it does not exist.
    must_exist : bool
        Whether a missing file is an error instead.
    """

    def __init__(self, path: str | Path, *, must_exist: bool = False) -> None:
        self.path = Path(path)
        if must_exist and not self.path.is_file():
            raise FileNotFoundError(f"there are no results in {path}; run the benchmark first")
        with self._explained():
            self._connection = sqlite3.connect(self.path, timeout=_LOCK_SECONDS)
            self._connection.executescript(_SCHEMA)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._connection.close()

    def begin_run(
        self, started: str, command: str, machine: Mapping[str, Any], versions: Mapping[str, Any]
    ) -> int:
        """Record the start of a run, and return its number."""
        values = (started, command, json.dumps(machine), json.dumps(versions))
        with self._explained(), self._connection:
            cursor = self._connection.execute(
                "insert into runs (started, command, machine, versions) values (?, ?, ?, ?)", values
            )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def add(self, run: int, result: FitResult) -> None:
        """Write a result to disk; it replaces an earlier one of the same fit."""
        values = [getattr(result, name) for name in _COLUMNS]
        status = "ok" if result.error is None else "error"
        marks = ", ".join("?" * (len(_COLUMNS) + 2))
        with self._explained(), self._connection:
            self._connection.execute(
                f"insert or replace into results ({', '.join(_COLUMNS)}, run, status) "
                f"values ({marks})",
                (*values, run, status),
            )
            if result.scores is not None and result.is_outlier is not None:
                truth = result.is_outlier.astype(np.uint8).tobytes()
                scores = result.scores.astype("<f8").tobytes()
                self._connection.execute(
                    "insert or replace into scores values (?, ?, ?, ?, ?, ?)",
                    (*result.key, truth, scores),
                )

    def finished(self, *, with_scores: bool = False) -> set[Key]:
        """Return the keys of successful fits; with `with_scores`, only of those with scores."""
        query = "select dataset, fold, detector, seed from results where status = 'ok'"
        if with_scores:
            query += " intersect select dataset, fold, detector, seed from scores"
        with self._explained():
            return set(self._connection.execute(query))

    def folds_of(self, dataset: str) -> set[str]:
        """Return the sources of folds in the results of a data set."""
        query = "select distinct folds from results where dataset = ?"
        with self._explained():
            return {row[0] for row in self._connection.execute(query, (dataset,))}

    def results(self) -> pd.DataFrame:
        """Return all results as a table, one row per fit."""
        import pandas as pd

        with self._explained():
            return pd.read_sql("select * from results order by 1, 2, 3, 4", self._connection)

    def runs(self) -> list[dict[str, Any]]:
        """Return the runs that made the results."""
        query = "select run, started, command, machine, versions from runs order by run"
        with self._explained():
            rows = self._connection.execute(query).fetchall()
        return [
            {
                "run": run,
                "started": started,
                "command": command,
                "machine": json.loads(machine),
                "versions": json.loads(versions),
            }
            for run, started, command, machine, versions in rows
        ]

    def failures(self) -> list[str]:
        """Return a line of text for every failed fit."""
        query = (
            "select dataset, fold, detector, seed, error from results where status = 'error' "
            "order by 1, 2, 3, 4"
        )
        with self._explained():
            rows = self._connection.execute(query).fetchall()
        return [
            f"{detector} on {dataset}, fold {fold}, seed {seed}: {error}"
            for dataset, fold, detector, seed, error in rows
        ]

    def scores(self) -> dict[Key, tuple[NDArray[np.bool_], NDArray[np.float64]]]:
        """Return the truth and the scores of every fit with scores."""
        query = "select dataset, fold, detector, seed, is_outlier, scores from scores"
        with self._explained():
            rows = self._connection.execute(query).fetchall()
        return {
            (dataset, fold, detector, seed): (
                np.frombuffer(truth, np.uint8).astype(bool),
                np.frombuffer(scores, "<f8"),
            )
            for dataset, fold, detector, seed, truth, scores in rows
        }

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise OSError with a remedy in place of SQLite's errors."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise OSError(
                f"cannot use the results in {self.path} ({error}); results written before are "
                "kept: free disk space or name another file, and run again"
            ) from error
