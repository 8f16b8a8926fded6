"""Columns predicted from the others: a value that does not fit the rest of its row.

Sums, shares and groups are linear in the columns, products and ratios are linear in their
logarithms; each column is predicted in the way that fits it better. One inverse of the second
moments has all predictions of a design: the residual of column j is (Ω x)_j / Ω_jj.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qms22._runtime import exact
from qms22.checks.arithmetic import half_unit
from qms22.checks.arrays import Bools, Floats, Ints

# Parts of the known-normal rows, each of which is predicted by what the others teach.
_FOLDS = 3
# Added to the variances of standardised columns.
_RIDGE = 1e-6
# Predictions of different size have different errors: the scale is learned in so many parts of
# their range, with at least so many rows each.
_PARTS = 8
_LEAST_IN_PART = 30
# The least scale of errors, as a share of the deviation of the column. The errors of an exact
# relation come from rounding, and nobody cares whether one is larger than another.
_LEAST_SCALE = 1e-3
# Columns with partial correlations from here on are named as what suggests a value.
_LEAST_PARTIAL = 0.15
# The largest standardised value, and the largest number: squares of larger ones would overflow.
LARGEST = 1e9
LARGEST_NUMBER = 1e150
# Values at or below 0 in a column of positive ones count as this share of the least of them.
_FLOOR = 0.1
# Numbers with up to so many decimals are rounded to them.
_MOST_DECIMALS = 4


class RelationInputs(NamedTuple):
    """Columns that relations are learned from, (n_rows, n_columns)."""

    numbers: Floats  # NaN stands for missing values
    levels: Floats  # 0 and 1: whether a row has a level of a category

    def take(self, rows: NDArray[Any]) -> RelationInputs:
        """Return some of the rows."""
        return RelationInputs(self.numbers[rows], self.levels[rows])


class Prediction(NamedTuple):
    """What the other columns of rows suggest, (n_rows, n_numbers)."""

    # Differences in units of the usual error; NaN where a value is missing.
    errors: Floats
    values: Floats  # between the ends of those that were learned from
    scales: Floats  # about how far suggestions are off
    is_rounding: Bools  # whether a difference is no larger than those from rounding
    # Whether values that are missing, or beyond the usual ones, make most of the scale.
    is_unsure: Bools


@dataclass(frozen=True)
class Design:
    """Columns as numbers with a mean of 0 and a deviation of 1, and the inverse of their moments.

    All but the last two fields are of shape (n_numbers,).
    """

    is_log: Bools  # whose logarithms are taken
    floor: Floats  # the least value of logarithms
    typical: Floats  # what replaces missing values
    mean: Floats
    deviation: Floats
    # The ends of the standardised values.
    lowest: Floats
    highest: Floats
    level_means: Floats  # (n_levels,)
    inverse: Floats  # (n_columns, n_columns)

    def standardize(self, numbers: Floats) -> Floats:
        """Return standardised numbers; missing ones are typical."""
        numbers = _logs(numbers, self.is_log, self.floor)
        standard = (np.where(np.isnan(numbers), self.typical, numbers) - self.mean) / self.deviation
        return np.clip(standard, -LARGEST, LARGEST)

    def predict(self, inputs: RelationInputs, inverse: Floats) -> tuple[Floats, Floats]:
        """Return standardised predictions, and the variance that unknown values add to them.

        A value beyond the usual ones counts as their end when others are predicted from it: nobody
        knows whether it is wrong, or the relation goes on. How far it is beyond is unknown then.
        """
        n_numbers = len(self.mean)
        standard = self.standardize(inputs.numbers)
        numbers = np.clip(standard, self.lowest, self.highest)
        weights = -inverse[:, :n_numbers] / np.diag(inverse)[:n_numbers]
        weights[np.diag_indices(n_numbers)] = 0.0
        others = np.hstack([numbers, inputs.levels - self.level_means])
        predicted = exact.product(others, weights)
        unknown = np.where(np.isnan(inputs.numbers), 1.0, standard - numbers)
        return predicted, exact.product(unknown**2, weights[:n_numbers] ** 2)


class Relations:
    """Predicts every column of numbers from all other columns."""

    # For each column of numbers, the columns that say most about it: positions among the numbers
    # and, after them, the levels; the strongest first.
    sources: list[tuple[int, ...]]
    _designs: list[Design]  # plain numbers, and logarithms
    _rounding: Floats
    _which: Ints
    _edges: Floats
    _scales: Floats

    def learn(self, inputs: RelationInputs, seed: int) -> Prediction:
        """Learn from known-normal rows; return predictions of them by rows they are not among."""
        n_rows, n_numbers = inputs.numbers.shape
        fold = np.random.RandomState(seed).permutation(n_rows) % _FOLDS
        is_positive = np.nanmin(inputs.numbers, axis=0, initial=np.inf) > 0
        folds = [fold == number for number in range(_FOLDS)]
        self._designs, found = [], []
        for is_log in (np.zeros(n_numbers, dtype=bool), is_positive):
            design, inverses = _learn_design(inputs, is_log, folds)
            predictions = np.empty((2, n_rows, n_numbers))
            for out, inverse in zip(folds, inverses, strict=True):
                predictions[:, out] = design.predict(inputs.take(out), inverse)
            self._designs.append(design)
            found.append(predictions)
        self._rounding = np.array([_rounding(column) for column in inputs.numbers.T])
        present = ~np.isnan(inputs.numbers)
        standard = [
            np.where(present, design.standardize(inputs.numbers), np.nan)
            for design in self._designs
        ]
        pairs = zip(standard, found, strict=True)
        # By the typical error and not by its square: outliers among the rows must not decide.
        plain, logs = (_medians(np.abs(each - predictions[0])) for each, predictions in pairs)
        self._which = np.where(is_positive & (logs < plain), 1, 0)
        predicted, added = self._chosen(found)
        self._learn_scales(self._chosen(standard), predicted, present)
        self.sources = [self._sources(at) for at in range(n_numbers)]
        return self._prediction(inputs, predicted, added)

    def error(self, column: int) -> float:
        """Return how large errors of a column usually are, as a share of its deviation."""
        return float(self._scales[:, column].max())

    def predict(self, inputs: RelationInputs, without: Sequence[int] = ()) -> Prediction:
        """Predict the numbers of other rows, as if some columns were not there.

        Columns are positions among the numbers and, after them, the levels.
        """
        n_numbers = len(self._which)
        found = []
        for design in self._designs:
            inverse, variance = _leave_out(design.inverse, without)
            predicted, added = design.predict(inputs, inverse)
            found.append(np.array([predicted, added + variance[:n_numbers]]))
        numbers = inputs.numbers.copy()
        numbers[:, [at for at in without if at < n_numbers]] = np.nan
        return self._prediction(RelationInputs(numbers, inputs.levels), *self._chosen(found))

    def _chosen(self, of_designs: Sequence[Floats]) -> Floats:
        return np.where(self._which == 1, of_designs[1], of_designs[0])

    def _learn_scales(self, standard: Floats, predictions: Floats, present: Bools) -> None:
        """Learn how large errors usually are, by the size of the prediction."""
        n_numbers = standard.shape[1]
        self._edges = np.zeros((_PARTS - 1, n_numbers))
        self._scales = np.ones((_PARTS, n_numbers))
        for at in range(n_numbers):
            predicted = predictions[present[:, at], at]
            errors = np.abs(standard[present[:, at], at] - predicted)
            if not len(errors):
                continue
            self._edges[:, at] = np.quantile(predicted, np.linspace(0, 1, _PARTS + 1)[1:-1])
            part = np.searchsorted(self._edges[:, at], predicted)
            whole = max(float(np.median(errors)), _LEAST_SCALE)
            for number in range(_PARTS):
                here = errors[part == number]
                usual = float(np.median(here)) if len(here) >= _LEAST_IN_PART else whole
                # A part may be exact by chance.
                self._scales[number, at] = max(usual, whole / 4)

    def _prediction(self, inputs: RelationInputs, predicted: Floats, added: Floats) -> Prediction:
        """Return errors in their scale, and predictions in the units of the columns."""
        standard = self._chosen([design.standardize(inputs.numbers) for design in self._designs])
        lowest, highest, mean, deviation, is_log = (
            self._chosen([getattr(design, field) for design in self._designs])
            for field in ("lowest", "highest", "mean", "deviation", "is_log")
        )
        pairs = zip(self._edges.T, predicted.T, strict=True)
        part = np.array([np.searchsorted(*pair) for pair in pairs], dtype=np.intp)
        variance = np.take_along_axis(self._scales, part.reshape(predicted.T.shape).T, axis=0) ** 2
        scale = np.sqrt(variance + added)
        errors = np.where(np.isnan(inputs.numbers), np.nan, (standard - predicted) / scale)
        values, scales = np.clip(predicted, lowest, highest) * deviation + mean, scale * deviation
        logs = np.flatnonzero(is_log)
        values[:, logs] = exact.exp(np.minimum(values[:, logs], 700.0))
        scales[:, logs] *= values[:, logs]
        is_rounding = np.abs(inputs.numbers - values) <= self._rounding
        return Prediction(errors, values, scales, is_rounding, added > variance)

    def _sources(self, column: int) -> tuple[int, ...]:
        inverse = self._designs[self._which[column]].inverse
        roots = np.sqrt(np.diag(inverse))
        partial = np.abs(inverse[column]) / (roots * roots[column])
        partial[column] = 0.0
        order = np.argsort(-partial, kind="stable")
        return tuple(order[partial[order] >= _LEAST_PARTIAL].tolist())


def _learn_design(
    inputs: RelationInputs, is_log: Bools, folds: Sequence[Bools]
) -> tuple[Design, list[Floats]]:
    """Learn a design; also return the inverses without each part of the rows."""
    n_numbers = inputs.numbers.shape[1]
    with np.errstate(invalid="ignore"):
        positive = np.where(inputs.numbers > 0, inputs.numbers, np.inf)
    floor = _FLOOR * np.min(positive, axis=0, initial=np.inf)
    floor = np.where(np.isfinite(floor), floor, 1.0)
    numbers = _logs(inputs.numbers, is_log, floor)
    typical = _medians(numbers)
    filled = np.where(np.isnan(numbers), typical, numbers)
    mean, deviation = filled.mean(axis=0), filled.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    standard = (filled - mean) / deviation
    level_means = inputs.levels.mean(axis=0)
    columns = np.hstack([standard, inputs.levels - level_means])
    moments = [exact.moments(columns[out]) for out in folds]
    total, n_rows = np.sum(moments, axis=0), len(columns)
    ridge = _RIDGE * np.eye(n_numbers + inputs.levels.shape[1])
    inverses = [
        exact.inverse((total - part) / max(n_rows - np.count_nonzero(out), 1) + ridge)
        for part, out in zip(moments, folds, strict=True)
    ]
    whole = exact.inverse(total / n_rows + ridge)
    ends = standard.min(axis=0), standard.max(axis=0)
    design = Design(is_log, floor, typical, mean, deviation, *ends, level_means, whole)
    return design, inverses


def _leave_out(inverse: Floats, columns: Sequence[int]) -> tuple[Floats, Floats]:
    """Return the inverse of the moments without some columns, and what that adds to the errors.

    The columns stay in place, with no weight.
    """
    out = np.zeros(len(inverse), dtype=bool)
    out[list(columns)] = True
    # The inverse of a part of a matrix is the Schur complement in its inverse.
    left = inverse.copy()
    for at in columns:
        left -= left[:, at, np.newaxis] * (left[at] / left[at, at])
    left = np.where(out[:, None] | out, np.eye(len(inverse)), left)
    variances = 1.0 / np.diag(left) - 1.0 / np.diag(inverse)
    return left, np.where(out, 0.0, np.maximum(variances, 0.0))


def _logs(numbers: Floats, is_log: Bools, floor: Floats) -> Floats:
    """Return numbers, or their logarithms; values that have none count as very small."""
    numbers = np.clip(numbers, -LARGEST_NUMBER, LARGEST_NUMBER)
    # A negative value of a positive column is as far below as a small one.
    return np.where(is_log, exact.log(np.maximum(numbers, floor)), numbers)


def _rounding(values: Floats) -> float:
    """Return the last decimal that numbers are rounded to, half of it for whole numbers, else 0.

    A rounded number that is computed from rounded ones is off by up to two halves.
    """
    if np.nanmax(np.abs(values), initial=0.0) > 1e9:
        return 0.0
    half = half_unit(values, _MOST_DECIMALS)
    return half if half == 0.5 else 2 * half


def _medians(columns: Floats) -> Floats:
    """Return the median of what is there in each column, 0 where nothing is."""
    present = (column[~np.isnan(column)] for column in columns.T)
    return np.array([np.median(column) if len(column) else 0.0 for column in present])
