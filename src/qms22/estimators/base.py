"""What estimators share: the parameters of CPM, and the line between normal and outlier."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin

from qms22._cpm.sweeps import SolverOptions
from qms22._runtime.devices import resolve_device
from qms22._runtime.validation import check_choice


class QMSEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that solves QMS tasks; stores parameters of `SolverOptions` by their names."""

    def _solver_options(self, n_threads: int) -> SolverOptions:
        """Check the parameters and gather those of the solver."""
        parameters = self.get_params(deep=False)
        parameters["device"] = resolve_device(self.device)
        check_choice("scaling", parameters.get("scaling"), ("maxabs", "standard", None))
        names = parameters.keys() & {field.name for field in fields(SolverOptions)}
        return SolverOptions(**{name: parameters[name] for name in names}, n_threads=n_threads)


class ThresholdMixin(OutlierMixin):  # type: ignore[misc]
    """A detector with `score_samples`, and with `offset_` for a line between the two kinds."""

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute ``score_samples(X) - offset_``; negative values are outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decision: NDArray[np.float64] = self.score_samples(X) - self.offset_
        return decision

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Tell outliers (-1) from normal rows (1).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X) < 0, -1, 1)
