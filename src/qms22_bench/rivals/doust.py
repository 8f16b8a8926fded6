"""DOUST: a small network that tells the batch from the known-normal rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit  # type: ignore[import-untyped, unused-ignore]
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from qms22_bench.rivals.base import check_count, check_rows
from qms22_bench.rivals.scaling import Scaler, range_scaler
from qms22_bench.rivals.threads import in_batches, in_threads

# The network and the first stage are those of the paper.
_HIDDEN = (100, 100, 100)
_FIRST_EPOCHS = 5
_ROWS_PER_STEP = 100

# σ(z − 1): without a shift a network of zeros, σ(0) = ½, would solve the first stage.
_SHIFT = 1.0

# The usual settings of Adam.
_LEARNING_RATE = 1e-3
_DECAY, _SQUARE_DECAY = 0.9, 0.999
_SMALL = 1e-7

# In ranges of the normal rows; float32 has to hold the sums of a layer.
_LARGEST = 1e6

Single = NDArray[np.float32]
_Float = TypeVar("_Float", np.float32, np.float64)


@dataclass(kw_only=True, eq=False, repr=False)
class DOUST(BaseEstimator):  # type: ignore[misc]
    """DOUST: test-time training of a network on the unlabeled batch S.

    A network f has three layers of 100 rectified linear units and one output in (0, 1), all
    without bias. It learns in two stages. The first one pulls the known-normal rows T to the
    middle of the range, by minimising the mean of (f(x) − ½)² over T. The second one minimises

        mean of f(x)² over T + mean of (1 − f(x))² over S.

    Normal rows of S are pulled up as much as their like in T are pulled down; only outliers can
    rise. The score of a row is f(x).

    Parameters
    ----------
    n_epochs : int, default=50
        Passes over T and S in the second stage. The first stage has 5.
    n_jobs : int or None, default=None
        Threads that score rows; -1 means all cores. It does not change the result.
    random_state : int, RandomState or None, default=None
        Seed of the weights and of the order of rows.

    Attributes
    ----------
    unlabeled_scores_ : ndarray of shape (n_unlabeled,)
        Scores of the unlabeled rows, in their order; higher is more suspicious.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if T has names.

    Notes
    -----
    Layers, losses, the epochs of the first stage and steps of 100 rows are the paper's, and so is
    the idea to shift the sigmoid of the output. Chosen here are that shift, σ(z − 1), the scaling
    to the range [0, 1] of T, Glorot's uniform weights, Adam with a learning rate of 0.001, and
    steps of mixed rows of T and S, which are weighted such that the two parts of the loss count
    equally over an epoch.

    So are the epochs of the second stage: of 20, 50, 100 and 200, 50 have the best mean AUC on a
    quarter of ADBench's data sets. On KEEL's smaller ones more epochs are better (0.76 for 50 and
    0.80 for 200 on one fold of a quarter of them, where kNN has 0.84), but then a batch of 100
    rows with ten outliers that are easy to find is learned by heart.

    References
    ----------
    S. Klüttermann, E. Müller, "About test-time training for outlier detection", 2024.
    https://arxiv.org/abs/2404.03495

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics import roc_auc_score
    >>> from qms22_bench.rivals import DOUST
    >>> rng = np.random.default_rng(0)
    >>> T, S = rng.normal(size=(1000, 4)), rng.normal(size=(500, 4))
    >>> S[:50] += 6
    >>> detector = DOUST(random_state=0).fit(T, unlabeled=S)
    >>> roc_auc_score(np.arange(500) < 50, detector.unlabeled_scores_) > 0.95
    True
    """

    n_epochs: int = 50
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None

    def fit(self, X: ArrayLike, y: object = None, *, unlabeled: ArrayLike | None = None) -> Self:
        """Learn what distinguishes the unlabeled batch from the known-normal rows.

        Parameters
        ----------
        X : array-like of shape (n_normal, n_features)
            T: known-normal rows.
        y : Ignored
        unlabeled : array-like of shape (n_unlabeled, n_features), optional
            S: the batch to search. Without it T takes its place: then there is nothing to learn.

        Returns
        -------
        self
            The fitted detector.
        """
        check_count("n_epochs", self.n_epochs)
        normal = check_rows(self, X, reset=True)
        batch = normal if unlabeled is None else check_rows(self, unlabeled)
        self._scaler = unit_range_scaler(normal)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        # One task, so that BLAS has one thread: the order of its sums changes with their number.
        [self._layers] = in_threads(lambda rows: self._train(*rows, seed), [(normal, batch)], 1)
        self.unlabeled_scores_ = self._outputs(batch)
        return self

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score new rows; higher is more normal.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return -self._outputs(check_rows(self, X))

    def _train(
        self, normal: NDArray[np.float64], batch: NDArray[np.float64], seed: int
    ) -> list[NDArray[np.float64]]:
        """Return the weights of a network after both stages."""
        rng = np.random.default_rng(seed)
        network = Network(normal.shape[1], rng)
        known = self._scaler.transform(normal).astype(np.float32)
        sought = self._scaler.transform(batch).astype(np.float32)
        network.learn(Examples.of([(known, 0.5)]), _FIRST_EPOCHS, rng)
        network.learn(Examples.of([(known, 0.0), (sought, 1.0)]), self.n_epochs, rng)
        return [layer.astype(np.float64) for layer in network.layers]

    def _outputs(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        def outputs(part: NDArray[np.float64]) -> NDArray[np.float64]:
            *_, z = forward(self._layers, self._scaler.transform(part))
            return np.asarray(expit(z), dtype=np.float64)

        return in_batches(outputs, rows, self.n_jobs)


def unit_range_scaler(normal: NDArray[np.float64]) -> Scaler:
    """Return a scaler of every column to [0, 1]; a constant column keeps its unit."""
    scaler = range_scaler(normal)
    return replace(scaler, center=(normal / scaler.peak).min(axis=0), limit=_LARGEST)


@dataclass(frozen=True)
class Examples:
    """Scaled rows, the outputs they should have, and their weights, which have mean 1."""

    rows: Single
    targets: Single
    weights: Single

    @classmethod
    def of(cls, parts: list[tuple[Single, float]]) -> Examples:
        """Return rows with their targets; each part has the same total weight."""
        sizes = [len(rows) for rows, _ in parts]
        weights = [sum(sizes) / (len(sizes) * size) for size in sizes]
        return cls(
            np.concatenate([rows for rows, _ in parts]),
            np.repeat([target for _, target in parts], sizes).astype(np.float32),
            np.repeat(weights, sizes).astype(np.float32),
        )

    def __getitem__(self, chosen: NDArray[np.intp]) -> Examples:
        return Examples(self.rows[chosen], self.targets[chosen], self.weights[chosen])


class Network:
    """Layers of rectified linear units without bias, trained by Adam.

    Parameters
    ----------
    n_features : int
    rng : numpy.random.Generator
        Draws the weights.
    """

    def __init__(self, n_features: int, rng: np.random.Generator) -> None:
        shapes = list(pairwise((n_features, *_HIDDEN, 1)))
        drawn = [rng.uniform(-1, 1, shape) * np.sqrt(6 / sum(shape)) for shape in shapes]
        self._weights = np.concatenate([layer.ravel() for layer in drawn], dtype=np.float32)
        self.layers = split_layers(self._weights, shapes)
        self._gradient = np.empty_like(self._weights)
        self._gradients = split_layers(self._gradient, shapes)

    def learn(self, examples: Examples, n_epochs: int, rng: np.random.Generator) -> None:
        """Minimise the mean of weight · (f(x) − target)², in steps of random rows."""
        n_rows = len(examples.rows)
        optimizer = Adam(self._weights)
        for _ in range(n_epochs):
            order = rng.permutation(n_rows)
            for part in gen_batches(n_rows, _ROWS_PER_STEP):
                optimizer.step(self._differentiate(examples[order[part]]))

    def _differentiate(self, examples: Examples) -> Single:
        """Return the gradient of the mean loss of some examples, as one vector."""
        *inputs, z = forward(self.layers, examples.rows)
        f = expit(z)
        errors = examples.weights * (f - examples.targets)
        slope = (2 / len(errors) * errors * f * (1 - f))[:, None]
        for number in reversed(range(len(self.layers))):
            np.matmul(inputs[number].T, slope, out=self._gradients[number])
            slope = slope @ self.layers[number].T * (inputs[number] > 0)
        return self._gradient


class Adam:
    """Adam's rule, which changes a vector of weights in place.

    Parameters
    ----------
    weights : ndarray of shape (n,)
    """

    def __init__(self, weights: Single) -> None:
        self._weights = weights
        self._mean, self._square = np.zeros_like(weights), np.zeros_like(weights)
        self._n_steps = 0

    def step(self, gradient: Single) -> None:
        """Change the weights by one step against a gradient."""
        self._n_steps += 1
        self._mean += (1 - _DECAY) * (gradient - self._mean)
        self._square += (1 - _SQUARE_DECAY) * (gradient**2 - self._square)
        unbiased = math.sqrt(1 - _SQUARE_DECAY**self._n_steps) / (1 - _DECAY**self._n_steps)
        self._weights -= _LEARNING_RATE * unbiased * self._mean / (np.sqrt(self._square) + _SMALL)


def split_layers(weights: Single, shapes: list[tuple[int, int]]) -> list[Single]:
    """Return views of one vector as matrices of these shapes."""
    ends = np.cumsum([height * width for height, width in shapes])
    return [
        part.reshape(shape)
        for part, shape in zip(np.split(weights, ends[:-1]), shapes, strict=True)
    ]


def forward(layers: list[NDArray[_Float]], rows: NDArray[_Float]) -> list[NDArray[_Float]]:
    """Return the input of every layer, and last the argument of the sigmoid."""
    inputs: list[NDArray[_Float]] = [rows]
    for layer in layers[:-1]:
        inputs.append(np.maximum(inputs[-1] @ layer, 0))
    inputs.append((inputs[-1] @ layers[-1])[:, 0] - _SHIFT)
    return inputs
