"""Data sets with known outliers, and folds for the evaluation of detectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from qms22_bench.datasets.labeled_rows import Feature, LabeledRows


@dataclass(frozen=True, eq=False)
class Fold:
    """One round of an evaluation: known-normal rows, and a batch with outliers to find.

    Parameters
    ----------
    number : int
        From 1.
    features : tuple of str
        Names of the columns of both matrices.
    normal : ndarray of shape (n_normal, n_features)
        T: the training part without its outliers, not scaled.
    unlabeled : ndarray of shape (n_unlabeled, n_features)
        S: the test part.
    is_outlier : ndarray of shape (n_unlabeled,), bool
        Which rows of S are outliers.
    """

    number: int
    features: tuple[str, ...]
    normal: NDArray[np.float64] = field(repr=False)
    unlabeled: NDArray[np.float64] = field(repr=False)
    is_outlier: NDArray[np.bool_] = field(repr=False)


@dataclass(frozen=True, eq=False)
class OfficialFold:
    """A fold that comes with the data.

    Parameters
    ----------
    rows : LabeledRows
        The training part, then the test part.
    n_train : int
        Number of rows of the training part.
    """

    rows: LabeledRows
    n_train: int


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with known outliers.

    Parameters
    ----------
    name : str
    features : tuple of str
        Names of the columns, before encoding.
    rows : LabeledRows
        The rows without missing values.
    origin : str
        Where the rows were read from.
    n_dropped : int
        Number of rows that were left out because of missing values.
    notes : tuple of str
        Known faults of the data.
    official : tuple of OfficialFold
        Folds that come with the data; if there are none, `folds` draws them.
    official_name : str
        What those folds are called in results.
    n_folds : int
        Number of folds.
    seed : int
        Seed of the draw.

    Examples
    --------
    >>> import numpy as np
    >>> from qms22_bench.datasets import Dataset, LabeledRows
    >>> height = np.arange(20.0)
    >>> colour = np.array(["red", "blue"] * 10, dtype=object)
    >>> rows = LabeledRows((height, colour), is_outlier=height % 4 == 0)
    >>> dataset = Dataset("toy", ("height", "colour"), rows)
    >>> dataset.folds_source
    'stratified, seed 0'
    >>> fold = next(dataset.folds())
    >>> fold.features
    ('height', 'colour=blue', 'colour=red')
    >>> fold.normal.shape, fold.unlabeled.shape, int(fold.is_outlier.sum())
    ((12, 3), (4, 3), 1)
    """

    name: str
    features: tuple[str, ...]
    rows: LabeledRows = field(repr=False)
    origin: str = "memory"
    n_dropped: int = 0
    notes: tuple[str, ...] = ()
    official: tuple[OfficialFold, ...] = field(default=(), repr=False)
    official_name: str = "official"
    n_folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.official:
            return
        if self.n_folds < 2:
            raise ValueError(f"n_folds must be at least 2; got {self.n_folds}")
        for kind, count in (
            ("outlier", self.n_outliers),
            ("normal", self.n_rows - self.n_outliers),
        ):
            if count < self.n_folds:
                raise ValueError(
                    f"data set {self.name!r} has {count} {kind} rows without missing values, fewer "
                    f"than n_folds={self.n_folds}, so that a fold would have none; give more rows "
                    "or a smaller n_folds"
                )

    @property
    def n_rows(self) -> int:
        """Number of rows without missing values."""
        return len(self.rows)

    @property
    def n_features(self) -> int:
        """Number of columns before encoding."""
        return len(self.features)

    @property
    def n_outliers(self) -> int:
        """Number of rows that are outliers."""
        return int(self.rows.is_outlier.sum())

    @property
    def columns(self) -> tuple[Feature, ...]:
        """The columns: numbers (float64) or texts (object)."""
        return self.rows.columns

    @property
    def is_outlier(self) -> NDArray[np.bool_]:
        """Which rows are outliers."""
        return self.rows.is_outlier

    @property
    def folds_source(self) -> str:
        """Where the folds come from, such as "official", or how they are drawn."""
        return self.official_name if self.official else f"stratified, seed {self.seed}"

    def stratified(self, seed: int) -> Dataset:
        """Return the same rows with folds drawn by this seed instead of official ones."""
        return replace(self, official=(), seed=seed)

    def folds(self) -> Iterator[Fold]:
        """Return the folds.

        The levels of text columns are those of the training and the test part together, so that
        both matrices have the same columns.

        Yields
        ------
        Fold
        """
        if self.official:
            for number, fold in enumerate(self.official, start=1):
                yield self._official_fold(number, fold)
        else:
            yield from self._stratified_folds()

    def _official_fold(self, number: int, fold: OfficialFold) -> Fold:
        names, matrix = fold.rows.encode(self.features)
        positions = np.arange(len(matrix))
        train, test = positions[: fold.n_train], positions[fold.n_train :]
        return _make_fold(number, names, matrix, fold.rows.is_outlier, train, test)

    def _stratified_folds(self) -> Iterator[Fold]:
        # The import takes half a second, which names and sizes of data sets do not need.
        from sklearn.model_selection import StratifiedKFold

        splitter = StratifiedKFold(self.n_folds, shuffle=True, random_state=self.seed)
        names, matrix = self.rows.encode(self.features)
        splits = splitter.split(matrix, self.is_outlier)
        for number, (train, test) in enumerate(splits, start=1):
            yield _make_fold(number, names, matrix, self.is_outlier, train, test)


def _make_fold(
    number: int,
    names: tuple[str, ...],
    matrix: NDArray[np.float64],
    is_outlier: NDArray[np.bool_],
    train: NDArray[np.intp],
    test: NDArray[np.intp],
) -> Fold:
    normal = train[~is_outlier[train]]
    return Fold(number, names, matrix[normal], matrix[test], is_outlier[test])
