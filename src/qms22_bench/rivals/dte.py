"""Diffusion time estimation without a network: how much noise would explain a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qms22_bench.rivals.base import check_count
from qms22_bench.rivals.knn import NearestDetector
from qms22_bench.rivals.scaling import Scaler, deviation_scaler


@dataclass(kw_only=True, eq=False, repr=False)
class DTENonParametric(NearestDetector):
    """Non-parametric diffusion time estimation (DTE-NP).

    A diffusion adds Gaussian noise to normal rows, more of it in each step. The score of a row is
    the mean of the posterior distribution of the step it would come from:

        p(t | x) ∝ σ_t^(−d) exp(−r² / (2 σ_t²))

    with σ_t² the variance of the noise after step t, d the number of features and r² the mean
    squared distance of x to its nearest normal rows. Features have standard deviation 1.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbors k, at most the number of normal rows.
    n_steps : int, default=500
        Steps of the diffusion.
    n_jobs : int or None, default=None
        Threads; -1 means all cores. It does not change the result.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the normal rows had names.

    Notes
    -----
    ``score_samples`` is minus the mean diffusion time. The time increases with r², so rows are in
    the order of their mean squared distance; rows beyond all noise share the last step.

    References
    ----------
    V. Livernoche, V. Jain, Y. Hezaveh, S. Ravanbakhsh, "On diffusion modeling for anomaly
    detection", ICLR 2024. https://openreview.net/forum?id=lR3rk7ysXz

    Examples
    --------
    >>> import numpy as np
    >>> from qms22_bench.rivals import DTENonParametric
    >>> rng = np.random.default_rng(0)
    >>> detector = DTENonParametric().fit(rng.normal(size=(300, 4)))
    >>> usual, odd = detector.score_samples([[0, 0, 0, 0], [6, 6, 6, 6]])
    >>> bool(odd < usual)
    True
    """

    n_neighbors: int = 5
    n_steps: int = 500
    n_jobs: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_steps", self.n_steps, least=2)

    def _learn_scaler(self, normal: NDArray[np.float64]) -> Scaler:
        return deviation_scaler(normal)

    def _score_distances(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        squares = np.mean(distances**2, axis=1)
        variances = noise_variances(self.n_steps)
        n_features = self._index.rows.shape[1]
        logarithms = -0.5 * (n_features * np.log(variances) + squares[:, None] / variances)
        logarithms -= logarithms.max(axis=1, keepdims=True)
        weights = np.exp(logarithms)
        # Not a matrix product: its rounding depends on the number of rows.
        steps = np.arange(self.n_steps)
        times: NDArray[np.float64] = (weights * steps).sum(axis=1) / weights.sum(axis=1)
        return -times


def noise_variances(n_steps: int) -> NDArray[np.float64]:
    """Return the variance of the noise after each step, by the schedule of the paper."""
    kept = np.cumprod(1.0 - np.linspace(1e-4, 1e-2, n_steps))
    return np.asarray(1.0 - kept, dtype=np.float64)
