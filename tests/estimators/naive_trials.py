"""Scores in the trial of one row, by their definitions: a fit for each row that is left out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qms22._cpm.scaling import DEVIATION, FeatureScaler
from qms22.estimators.learning import distance_scaler

Rows = NDArray[np.float64]

NEIGHBORS = 16
FLOOR = 1e-3
RIDGE = 1e-3
LEAST = 1e-12


def distance_rows(normal: Rows, batch: Rows, groups: Sequence[Sequence[int]]) -> Rows:
    """Scale all rows, those of the batch last."""
    rows = np.concatenate([normal, batch])
    standard = FeatureScaler.learn(rows, "standard")
    return distance_scaler(standard, rows, groups).transform(rows)


def naive_distances(rows: Rows, references: Sequence[int]) -> list[float]:
    """Return the score of each row: neighbors are the references except itself."""
    floor = FLOOR * (math.sqrt(2 * float(rows.var(axis=0).sum())) or 1.0)
    scores = []
    for number, row in enumerate(rows):
        distances = sorted(math.dist(row, rows[other]) for other in references if other != number)
        logs = [math.log(distance + floor) for distance in distances[:NEIGHBORS]]
        weights = [0.5**place for place in range(1, len(logs) + 1)]
        scores.append(float(np.average(logs, weights=weights)) if logs else 0.0)
    return scores


def naive_covariance(normal: Rows, batch: Rows, trial: int) -> list[float]:
    """Return the score of each row, those of the batch last: moments are without itself."""
    everything = np.concatenate([normal, batch])
    rows = FeatureScaler.learn(everything, "standard").transform(everything) / DEVIATION
    learned = [*range(len(normal)), len(normal) + trial]
    scores = []
    for number, row in enumerate(rows):
        others = rows[[other for other in learned if other != number]]
        moments = others.T @ others / len(learned) + RIDGE * np.eye(rows.shape[1])
        scores.append(math.log(float(row @ np.linalg.solve(moments, row)) + LEAST))
    return scores
