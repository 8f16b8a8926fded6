"""What the command finds of planted errors, and what it says of batches without any."""

from __future__ import annotations

import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from businesses import (
    bookings,
    claims,
    laboratory,
    machines,
    meters,
    orders,
    parcels,
    payroll,
    scans,
    transfers,
    visits,
    weblog,
)
from businesses.plant import Business, Planted, plant
from qms22 import Detection, detect

_MODULES = (
    transfers,
    meters,
    laboratory,
    orders,
    claims,
    payroll,
    parcels,
    weblog,
    machines,
    bookings,
    scans,
    visits,
)
BUSINESSES: dict[str, Business] = {module.BUSINESS.name: module.BUSINESS for module in _MODULES}
FDR = 0.1


@dataclass(frozen=True)
class BatchResult:
    """One batch.

    Parameters
    ----------
    table : str
    seed, period : int
    n_planted : int
        Rows with errors, 0 for a clean batch.
    n_flagged, n_false : int
        Flagged rows, and those of them without an error.
    recall_top : float
        Share of the n planted rows among the first 2n of the ranking.
    recall_flagged, fdp, average_precision : float
    decision : str
        Of the verdict; anything but "fine" is an alarm.
    seconds : float
    """

    table: str
    seed: int
    period: int
    n_planted: int
    n_flagged: int
    n_false: int
    recall_top: float
    recall_flagged: float
    fdp: float
    average_precision: float
    decision: str
    seconds: float


@dataclass(frozen=True)
class ErrorResult:
    """One planted row: its error, the changed cells, its rank and what was said about it."""

    table: str
    seed: int
    period: int
    family: str
    kind: str
    row: int
    rank: int
    is_top: bool
    is_flagged: bool
    change: str
    reasons: str


def measure_planted(
    business: Business, seed: int, period: int
) -> tuple[BatchResult, list[ErrorResult]]:
    """Search a batch with errors; a rank counts no bystanders."""
    planted = plant(business, business.batch(seed, period), seed, period)
    found, seconds = _search(business, seed, planted.batch)
    is_flagged = np.asarray(found.flagged)
    ranks = _ranks(planted, np.asarray(found.ranking))
    rows = np.array(list(planted.errors))
    n_top = 2 * len(rows)
    own = ranks[rows]
    errors = [
        ErrorResult(
            business.name,
            seed,
            period,
            error.family,
            error.kind,
            row,
            int(ranks[row]),
            bool(ranks[row] <= n_top),
            bool(is_flagged[row]),
            planted.changes(row),
            "; ".join(reason.text for reason in found.reasons.get(row, [])),
        )
        for row, error in planted.errors.items()
    ]
    involved = [*planted.errors, *planted.bystanders]
    n_false = int(np.delete(is_flagged, involved).sum())
    n_true = int(is_flagged[rows].sum())
    batch = BatchResult(
        business.name,
        seed,
        period,
        len(rows),
        n_true + n_false,
        n_false,
        float((own <= n_top).mean()),
        n_true / len(rows),
        n_false / max(1, n_true + n_false),
        float((np.arange(1, len(rows) + 1) / np.sort(own)).mean()),
        _decision(found),
        seconds,
    )
    return batch, errors


def measure_clean(business: Business, seed: int, period: int) -> BatchResult:
    """Search a batch without errors."""
    found, seconds = _search(business, seed, business.written(business.batch(seed, period)))
    n_flagged = int(np.sum(found.flagged))
    nan = float("nan")
    return BatchResult(
        business.name,
        seed,
        period,
        0,
        n_flagged,
        n_flagged,
        nan,
        nan,
        float(n_flagged > 0),
        nan,
        _decision(found),
        seconds,
    )


def _search(business: Business, seed: int, batch: pd.DataFrame) -> tuple[Detection, float]:
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "normal.csv"), Path(folder, "batch.csv")
        business.written(business.normal(seed)).to_csv(files[0], index=False)
        batch.to_csv(files[1], index=False)
        begin = time.perf_counter()
        with warnings.catch_warnings():
            # It warns of drift, which the verdict says too.
            warnings.simplefilter("ignore", UserWarning)
            found = detect(*files, fdr=FDR, n_jobs=2)
        return found, time.perf_counter() - begin


def _ranks(planted: Planted, ranking: np.ndarray) -> np.ndarray:
    """Return the rank of each row, from 1; rows that are not in the ranking come last."""
    n_rows = len(planted.batch)
    ranks = np.full(n_rows, n_rows)
    counted = ranking[~np.isin(ranking, list(planted.bystanders))]
    ranks[counted] = np.arange(1, len(counted) + 1)
    return ranks


def _decision(found: Detection) -> str:
    return found.verdict.decision if found.verdict else ""
