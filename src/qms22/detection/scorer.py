"""Scores of the rows of a table: those of a detector, raised by checks of single cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.arrays import as_host
from qms22.detection.checks import OddCells, TableChecks
from qms22.detection.checks.base import Columns
from qms22.detection.encoding import EncodedTables
from qms22.estimators.batch_detector import BatchDetector
from qms22.tables import TabularEncoder


class ScoredRows(NamedTuple):
    """Scores of some rows of a table.

    Parameters
    ----------
    positions : ndarray of int
        The rows that are scored; the others are dropped.
    scores : ndarray
        Higher is more suspicious.
    odd : OddCells
        The checks in which they are the oddest.
    """

    positions: NDArray[np.intp]
    scores: NDArray[np.float64]
    odd: OddCells


@dataclass(frozen=True, eq=False)
class TableScorer:
    """An encoder, a detector and checks that belong together.

    Parameters
    ----------
    encoder : TabularEncoder
    detector : BatchDetector
    checks : TableChecks
    """

    encoder: TabularEncoder
    detector: BatchDetector
    checks: TableChecks

    def score(self, table: Any, *, is_part: bool = False) -> ScoredRows:
        """Score some rows of a table.

        With `is_part` the score of a row does not depend on the others; see `TableChecks.read`.
        """
        positions, matrix = self.encoder.transform_part(table)
        used = table if len(positions) == len(table) else table.iloc[positions]
        rows = self.checks.read(self.encoder.typed_cells(used), is_part=is_part)
        if not len(positions):
            return ScoredRows(positions, np.empty(0), OddCells.empty(0))
        of_checks, odd = self.checks.look(rows)
        scores = -self.detector.score_samples(matrix) + self.checks.weight * of_checks
        return ScoredRows(positions, scores, odd)

    def score_batch(self, encoded: EncodedTables) -> ScoredRows:
        """Score the batch that the detector was fitted with, and set the weight of the checks."""
        rows = self.checks.read(encoded.batch_cells)
        scores = self.detector.unlabeled_scores_
        return ScoredRows(encoded.positions, *raise_scores(self.checks, scores, rows))


def raise_scores(
    checks: TableChecks, scores: Any, rows: Columns
) -> tuple[NDArray[np.float64], OddCells]:
    """Add what checks say about a batch, and set their weight by it; also return odd cells.

    All rows are treated alike.
    """
    of_checks, odd = checks.look(rows)
    checks.weigh(of_checks)
    return as_host(scores) + checks.weight * of_checks, odd


def learn_checks(encoded: EncodedTables, seed: int, *, is_scored: bool = True) -> TableChecks:
    """Learn the checks of a table from its known-normal rows.

    Parameters
    ----------
    encoded : EncodedTables
    seed : int
    is_scored : bool
        Whether they raise scores.
    """
    checks = TableChecks(encoded.encoder)
    checks.learn(checks.read(encoded.normal_cells), seed)
    checks.is_scored = is_scored
    return checks
