"""Calibration of a detector together with the steps before it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state

from qms22._runtime.arrays import as_host
from qms22._runtime.packages import need
from qms22.estimators.calibration import Calibration, CalibrationSplit


def calibrate(
    estimator: Any,
    X: Any,
    *,
    unlabeled: Any,
    random_state: int | np.random.RandomState | None = None,
) -> Calibration:
    """Calibrate a detector together with all that is learned before it, such as an encoder.

    ``detector.flag`` calibrates what the detector learns, and no more. Where an encoder, an imputer
    or a selection of features has learned from all known-normal rows before, the held-out rows are
    no longer like rows of the batch, and the bound on false discoveries does not hold. Put these
    steps and the detector into one pipeline, and calibrate the pipeline.

    Parameters
    ----------
    estimator : estimator
        Has ``fit(X, unlabeled=batch)`` and ``score_samples``: a pipeline that ends in `QMS22` or
        `QMS22Ensemble`, for example. It is cloned and fitted once per split.
    X : array-like or data frame of n_normal rows
        T: known-normal rows as they are before the first step.
    unlabeled : array-like or data frame
        S: the batch to search, with the same columns.
    random_state : int, RandomState or None, default=None
        Draws the held-out rows; an int makes the answer repeatable.

    Returns
    -------
    Calibration
        Its methods ``flag``, ``p_values`` and ``estimate_contamination`` are those of `QMS22`.

    Examples
    --------
    >>> import numpy as np, sklearn
    >>> from sklearn.pipeline import Pipeline
    >>> from qms22 import QMS22, TabularEncoder, calibrate
    >>> rng = np.random.default_rng(0)
    >>> levels = np.array(["red", "green", "blue"], dtype=object)
    >>> T = np.column_stack([rng.normal(size=600), levels[rng.integers(3, size=600)]])
    >>> S = np.column_stack([rng.normal(size=60), levels[rng.integers(3, size=60)]])
    >>> S[:8] = [9.0, "black"]
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     detector = QMS22(random_state=0).set_fit_request(unlabeled=True)
    ...     steps = [("encode", TabularEncoder()), ("detect", detector)]
    ...     pipeline = Pipeline(steps, transform_input=["unlabeled"])
    ...     calibration = calibrate(pipeline, T, unlabeled=S, random_state=0)
    ...     flagged = np.flatnonzero(calibration.flag(fdr=0.1))
    >>> flagged.tolist()  # one false alarm among nine
    [0, 1, 2, 3, 4, 5, 6, 7, 39]
    """
    seed = check_random_state(random_state).randint(2**31 - 1)
    n_normal, n_batch = len(X), len(unlabeled)

    def score_split(split: CalibrationSplit) -> NDArray[np.float64]:
        mixture = _stack(unlabeled, _safe_indexing(X, split.held_out))
        fresh = clone(estimator)
        fresh.fit(_safe_indexing(X, split.known), unlabeled=_safe_indexing(mixture, split.order))
        scores: NDArray[np.float64] = -as_host(fresh.score_samples(mixture))
        return scores

    return Calibration(n_normal, n_batch, seed, score_split)


def _stack(first: Any, second: Any) -> Any:
    """Put the rows of one table below those of another one of the same kind."""
    if not hasattr(first, "columns"):
        return np.concatenate([np.asarray(first), np.asarray(second)])
    nw = need("narwhals.stable.v1", "a data frame")
    return nw.concat(
        [nw.from_native(table, eager_only=True) for table in (first, second)]
    ).to_native()
