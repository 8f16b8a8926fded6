"""Calibration of all steps from two tables to scores: encoder, scaling and detector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from qms22._runtime.chunks import draw_rows
from qms22._runtime.lazy_rows import LazyRows
from qms22._runtime.packages import need
from qms22.detection.checks import TableChecks
from qms22.detection.encoding import EncodedTables, encode_tables, encode_together
from qms22.detection.marks import MarkedRows
from qms22.detection.scorer import learn_checks, raise_scores
from qms22.estimators.batch_detector import BatchDetector
from qms22.estimators.calibration import Calibration, CalibrationSplit
from qms22.estimators.full_conformal import MOST_ROWS, FullCalibration
from qms22.estimators.splits import score_mixture

if TYPE_CHECKING:
    import pandas as pd

# Rows of each table that are pooled.
_MOST_POOLED = 20_000


def calibrate_tables(
    normal: pd.DataFrame,
    batch: pd.DataFrame,
    detector: BatchDetector,
    *,
    ignore: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    marked: Sequence[MarkedRows] = (),
    is_checked: bool = False,
    seed: int,
) -> Calibration:
    """Calibrate a detector of encoded tables together with their encoder.

    In each split the encoder learns kinds, levels, pools and usual values from the normal rows that
    are not held out, and what depends on the batch (the rules for periods) looks at the mixture. A
    held-out row can have a level that no other normal row has, just as a row of the batch can.

    Parameters
    ----------
    normal, batch : DataFrame
        The rows that are used, as `encode_tables` returns them. Values that are missing in other
        columns are imputed where a split uses such a column.
    detector : BatchDetector
        Its parameters are used, not what it has learned.
    ignore : sequence of str
        Columns to leave out.
    kinds : mapping of str to str, optional
        What columns are, where the user has said so.
    marked : sequence of MarkedRows
        Rows that are known to be anomalies or normal. They teach in every split and are never held
        out: rows that someone looked at because they were suspicious are not like other normal
        rows.
    is_checked : bool
        Whether checks of single cells raise the scores.
    seed : int
        Of the splits.
    """
    splits = _TableSplits(normal, batch, detector, tuple(ignore), tuple(marked), is_checked, kinds)
    return Calibration(len(normal), len(batch), seed, splits.score)


class PooledTables(NamedTuple):
    """Known-normal rows and a batch, encoded and checked by what learns from both alike.

    How odd a row is does not depend on which table it is in: so it can be compared with every
    known-normal row, and none has to be held out.

    Parameters
    ----------
    encoded : EncodedTables
        The known-normal rows, then those of the batch, as one table.
    n_normal : int
    is_whole : bool
        Whether all rows are there; of many, some are drawn.
    oddness : ndarray
        Of all these rows.
    """

    encoded: EncodedTables
    n_normal: int
    is_whole: bool
    oddness: NDArray[np.float64]

    @property
    def odd(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How odd known-normal rows and rows of the batch are."""
        return self.oddness[: self.n_normal], self.oddness[self.n_normal :]


def pool_tables(encoded: EncodedTables, *, seed: int) -> PooledTables:
    """Encode and check the rows of two tables together."""
    rng = np.random.RandomState(seed)
    tables = [
        table.iloc[draw_rows(len(table), _MOST_POOLED, rng)]
        for table in (encoded.normal, encoded.batch)
    ]
    both = encode_together(*tables, encoder=encoded.encoder, marked=encoded.marked)
    checks = TableChecks(both.encoder)
    oddness = checks.learn(checks.read(both.normal_cells), seed, pooled=True)
    is_whole = len(both.normal) == len(encoded.normal) + len(encoded.batch)
    return PooledTables(both, len(tables[0]), is_whole, oddness)


def compare_tables(
    pooled: PooledTables, detector: BatchDetector, *, is_checked: bool = False, seed: int
) -> FullCalibration | None:
    """Prepare the comparison with all known-normal rows; None if there are too many rows."""
    both, n_normal = pooled.encoded, pooled.n_normal
    if not detector._has_full or not pooled.is_whole or len(both.known) > MOST_ROWS:
        return None
    return FullCalibration(
        LazyRows(both.known[:n_normal]),
        LazyRows(both.known[n_normal:]),
        tuple(both.encoder.groups_.values()),
        seed=seed,
        marks=both.marks,
        odd=pooled.odd if is_checked else None,
        n_threads=effective_n_jobs(detector.n_jobs),
        verbose=detector.verbose,
    )


@dataclass(frozen=True, eq=False)
class _TableSplits:
    """Two tables and a detector, to be fitted together once per split."""

    normal: pd.DataFrame
    batch: pd.DataFrame
    detector: BatchDetector
    ignore: tuple[str, ...]
    marked: tuple[MarkedRows, ...] = ()
    is_checked: bool = False
    kinds: Mapping[str, str] | None = None

    def score(self, split: CalibrationSplit) -> NDArray[np.float64]:
        """Learn from the rows of a split and score its mixture."""
        normal = self.normal.iloc[split.known]
        mixture = need("pandas").concat([self.batch, self.normal.iloc[split.held_out]])
        encoded = encode_split(
            normal,
            mixture,
            self.ignore,
            n_searched=len(self.batch),
            marked=self.marked,
            kinds=self.kinds,
        )
        known, rows = LazyRows(encoded.known), LazyRows(encoded.rows)
        groups = tuple(encoded.encoder.groups_.values())
        scores = score_mixture(self.detector, known, rows, split, groups, encoded.marks)
        if not self.is_checked:
            return scores
        # The checks learn from the same rows as the detector, and treat the mixture alike.
        checks = learn_checks(encoded, split.rng.randint(2**31 - 1))
        return raise_scores(checks, scores, checks.read(encoded.batch_cells))[0]


def encode_split(
    known: pd.DataFrame,
    mixture: pd.DataFrame,
    ignore: tuple[str, ...],
    *,
    n_searched: int,
    marked: Sequence[MarkedRows] = (),
    kinds: Mapping[str, str] | None = None,
) -> EncodedTables:
    """Encode the rows of a split.

    Parameters
    ----------
    known, mixture : DataFrame
        Normal rows that are not held out; rows of the batch and held-out ones.
    ignore : tuple of str
        Columns to leave out.
    n_searched : int
        How many rows of the mixture are of the batch.
    marked : sequence of MarkedRows
        Rows that are known to be anomalies or normal.
    kinds : mapping of str to str, optional
        What columns are, where the user has said so.
    """
    return encode_tables(
        known,
        mixture,
        ignore=ignore,
        missing="impute",
        kinds=kinds,
        n_searched=n_searched,
        marked=marked,
    )
