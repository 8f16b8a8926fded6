"""PyOD's detectors by name, with scikit-learn's sign."""

from __future__ import annotations

import inspect
from contextlib import redirect_stdout
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator


class PyODDetector(BaseEstimator):  # type: ignore[misc]
    """A detector of PyOD with its own defaults, whose scores are higher for more normal rows.

    Parameters
    ----------
    name : str
        Name of the class, such as "ECOD".
    random_state : int or None, default=None
        Passed to the class if it has such a parameter.

    Attributes
    ----------
    detector_ : pyod.models.base.BaseDetector
        PyOD's own object.
    """

    def __init__(self, *, name: str, random_state: int | None = None) -> None:
        self.name = name
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Fit PyOD's detector to known-normal rows.

        Parameters
        ----------
        X : array-like of shape (n_normal, n_features)
        y : Ignored

        Returns
        -------
        self
        """
        rows = np.asarray(X)
        detector_class = find_pyod_class(self.name)
        known = inspect.signature(detector_class).parameters
        # Networks such as DeepSVDD have to know the number of features, and print every epoch.
        given = {"random_state": self.random_state, "n_features": rows.shape[1], "verbose": 0}
        self.detector_ = detector_class(
            **{name: value for name, value in given.items() if name in known}
        )
        self.detector_.fit(rows)
        return self

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return minus PyOD's scores; higher is more normal.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return -np.asarray(self.detector_.decision_function(np.asarray(X)), dtype=np.float64)


def find_pyod_class(name: str) -> Any:
    """Return PyOD's detector class of a name."""
    try:
        folder = import_module("pyod.models").__path__
    except ImportError as error:
        raise ImportError(
            f"detector 'pyod:{name}' needs pyod, which cannot be imported ({error}); "
            "run pip install 'qms22[pyod]'"
        ) from error
    # FeatureBagging is in feature_bagging: module names have underscores, class names do not.
    modules = {info.name.replace("_", ""): info.name for info in iter_modules(folder)}
    module_name = modules.get(name.lower())
    if module_name is not None:
        try:
            with redirect_stdout(None):  # some modules print what is missing as well
                module = import_module(f"pyod.models.{module_name}")
        except ImportError as error:
            raise ImportError(
                f"detector 'pyod:{name}' needs a package that is not installed ({error}); "
                "install it first"
            ) from error
        if hasattr(module, name):
            return getattr(module, name)
    raise ValueError(
        f"PyOD has no detector {name!r}; give the name of a class of pyod.models, "
        "such as 'pyod:IForest' or 'pyod:ECOD'"
    )
