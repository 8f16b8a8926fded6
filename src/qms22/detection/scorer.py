"""Scores of the rows of a table: those of a detector, raised by checks of single cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.arrays import as_host
from qms22._runtime.chunks import draw_rows
from qms22.checks import LearnedChecks, OddCells, TableChecks
from qms22.checks.copies import row_hashes
from qms22.checks.sequences.in_time import is_of_another_time
from qms22.decisions.ruler import Ruler
from qms22.detection.encoding import EncodedTables
from qms22.estimators.base import for_workers
from qms22.estimators.batch_detector import BatchDetector
from qms22.estimators.ensemble import QMS22Ensemble, rows_to_compare
from qms22.estimators.held_out import LearnedRows
from qms22.tables import TabularEncoder
from qms22.tables.columns.cells import Columns, part_of_rows, take_rows


class ScoredRows(NamedTuple):
    """The rows of a table that are not dropped: scores, and the checks in which they are oddest."""

    positions: NDArray[np.intp]
    scores: NDArray[np.float64]
    odd: OddCells


@dataclass(frozen=True, eq=False)
class TableScorer:
    """An encoder, a detector and checks that belong together."""

    encoder: TabularEncoder
    detector: BatchDetector
    checks: TableChecks

    def __getstate__(self) -> dict[str, Any]:
        """Return what the workers of a cluster get: no rows of the fit."""
        return {**vars(self), "detector": for_workers(self.detector)}

    def score(self, table: Columns, *, is_part: bool = False) -> ScoredRows:
        """Score some rows of a table.

        With `is_part` the score of a row does not depend on the others; see `TableChecks.read`.
        """
        typed = self.encoder._typed_cells(table)
        positions, matrix = self.encoder._transform_part(typed)
        rows = self.checks.read(part_of_rows(typed, positions), is_part=is_part)
        if not len(positions):
            return ScoredRows(positions, np.empty(0), OddCells.empty(0))
        of_checks, odd = self.checks.look(rows)
        scores = -self.detector.score_samples(matrix) + self.checks.weight * of_checks
        return ScoredRows(positions, scores, odd)

    def score_batch(self, encoded: EncodedTables, *, is_part: bool = False) -> ScoredRows:
        """Score the batch that the detector was fitted with, and set the weight of the checks."""
        of_checks, odd = self.checks.look(self.checks.read(encoded.batch_cells, is_part=is_part))
        self.checks.weigh(of_checks, sum(getattr(self.detector, "weights_", {}).values()))
        scores = as_host(self.detector.unlabeled_scores_) + self.checks.weight * of_checks
        return ScoredRows(encoded.positions, scores, odd)


def fit_detector(detector: BatchDetector, encoded: EncodedTables, max_samples: int | None) -> None:
    """Fit a detector; without `max_samples` it decides how many rows to learn from."""
    if len(encoded.known) < detector._least_normal:
        raise ValueError(
            f"{len(encoded.known)} known-normal rows are too few to learn from; give at least "
            f"{detector._least_normal}"
        )
    if max_samples is not None:
        detector.set_params(max_samples=max_samples)
    is_later = is_of_another_time(encoded.normal_cells, encoded.batch_cells)
    detector.fit(
        encoded.known,
        unlabeled=encoded.rows,
        outliers=encoded.marks.outliers,
        marked_normal=encoded.marks.normal,
        groups=encoded.encoder.groups_,
        is_later=is_later,
        mostly_normal=not is_later,
    )


def measure_normal(
    scorer: TableScorer,
    encoded: EncodedTables,
    learned: LearnedChecks,
    scores: NDArray[np.float64],
    n_batch: int,
    seed: int,
) -> Ruler | None:
    """Score known-normal rows like rows of the batch; of many, as many as `n_batch` rows need.

    Neither the detector nor the checks count what they have learned from the row itself. A row that
    the batch has, too, gets its score there; `scores` are those of the rows that the detector was
    fitted with. None stands for a detector that cannot do this without another fit.
    """
    detector = scorer.detector
    if not isinstance(detector, QMS22Ensemble):
        return None
    n_compared = rows_to_compare(n_batch)
    places = draw_rows(len(encoded.known), n_compared, np.random.RandomState(seed))
    own = detector.score_normal(encoded.known.select(places))
    checks = learned.checks
    own += checks.weight * learned.score(places)
    keys = row_hashes(take_rows(learned.normal, places), checks.roles.read)
    batch = row_hashes(checks.read(encoded.batch_cells, is_part=True), checks.roles.read)
    return Ruler.of(LearnedRows.of_equal(batch, scores).replace(own, keys))
