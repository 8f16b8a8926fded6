"""Which rows of a batch are flagged, and what is estimated with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from qms22._runtime.stages import begin_stage
from qms22._runtime.warn import warn_user
from qms22.detection.calibration import PooledTables, calibrate_tables, compare_tables
from qms22.detection.encoding import EncodedTables
from qms22.detection.scorer import TableScorer
from qms22.detection.verdict import CONFIDENCE
from qms22.estimators.conformal import ContaminationEstimate
from qms22.estimators.outlier_bound import OutlierBound
from qms22.estimators.verdict import Verdict, outlier_confidence


class Flags(NamedTuple):
    """Which rows of a batch are flagged, and what was estimated with it."""

    flagged: NDArray[np.bool_]
    p_values: NDArray[np.float64] | None = None
    contamination: ContaminationEstimate | None = None
    bound: OutlierBound | None = None
    agreement: NDArray[np.float64] | None = None


def flag_by_rate(
    encoded: EncodedTables,
    pooled: PooledTables,
    scorer: TableScorer,
    fdr: float,
    ignore: Sequence[str],
    n_rows: int,
    name: Callable[[int], str],
) -> Flags:
    """Flag rows of a batch, all of which were read, by a false discovery rate.

    `name` returns the name of an encoded row for messages.
    """
    detector = scorer.detector
    seed = check_random_state(detector.random_state).randint(2**31 - 1)
    begin_stage("calibrating")
    is_checked = scorer.checks.is_scored
    calibration = calibrate_tables(
        encoded.normal,
        encoded.batch,
        detector,
        ignore=ignore,
        kinds=encoded.encoder.kinds,
        marked=encoded.marked,
        is_checked=is_checked,
        seed=seed,
    )
    flagged, agreement = np.zeros(n_rows, dtype=bool), None
    begin_stage("comparing with known-normal rows")
    full = compare_tables(pooled, detector, is_checked=is_checked, seed=seed)
    if full is None:
        flagged[encoded.positions] = calibration.flag(fdr)
    else:
        flagged[encoded.positions] = full.flag(fdr)
        if full.is_quick(fdr):
            agreement = placed(full.agreement(fdr), encoded.positions, n_rows)
        if not flagged.any() and (why := full.why_none(fdr, name)):
            warn_user(why)
    p_values = placed(calibration.p_values(), encoded.positions, n_rows)
    bound = calibration.bound_outliers(confidence=outlier_confidence(CONFIDENCE))
    return Flags(flagged, p_values, calibration.estimate_contamination(), bound, agreement)


def share_of_outliers(
    flags: Flags, fdr: float | None, verdict: Verdict
) -> ContaminationEstimate | None:
    """Return the estimated share of outliers, not less than what flags and verdict say.

    The estimate comes from the rows with high p-values, and may be too low by chance. Most of the
    flagged rows are expected to be outliers, and the verdict has a bound of its own. That of a
    drift says nothing here: it may come from a column that scores leave out.
    """
    estimate = flags.contamination
    if estimate is None or fdr is None:
        return None
    fewest = (verdict.fewest_outliers or 0) if verdict.decision == "anomalies" else 0
    share = max((1 - fdr) * np.count_nonzero(flags.flagged), fewest) / verdict.n_rows
    return estimate._replace(share=max(estimate.share, share), high=max(estimate.high, share))


def placed(
    values: NDArray[np.float64], positions: NDArray[np.intp], n_rows: int
) -> NDArray[np.float64]:
    """Return values of some rows as an array for all rows, with NaN for the others."""
    result = np.full(n_rows, np.nan)
    result[positions] = values
    return result
