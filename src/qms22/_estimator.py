"""What both estimators share: the parameters of CPM."""

from __future__ import annotations

from dataclasses import fields

from sklearn.base import BaseEstimator

from qms22._solver import SolverOptions
from qms22._validation import check_choice


class QMSEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that solves QMS tasks; stores parameters of `SolverOptions` by their names."""

    def _solver_options(self, n_threads: int) -> SolverOptions:
        """Check the parameters and gather those of the solver."""
        check_choice("device", self.device, ("cpu",))
        check_choice("scaling", self.scaling, ("maxabs", "standard", None))
        names = [field.name for field in fields(SolverOptions) if field.name != "n_threads"]
        return SolverOptions(**{name: getattr(self, name) for name in names}, n_threads=n_threads)
