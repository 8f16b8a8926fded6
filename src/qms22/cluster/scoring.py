"""Scores of tables that a cluster passes in parts."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from qms22._runtime.validation import check_choice
from qms22.estimators.batch_detector import ROWS_OF_FIT, BatchDetector


def without_batch(detector: BaseEstimator, method: str) -> Any:
    """Copy a fitted detector, to be sent to workers, without the rows and scores of its fit."""
    check_is_fitted(detector)
    if method != "score_samples":
        getattr(detector, "offset_", None)  # may be computed only now, from these rows
    light = copy.copy(detector)
    for name in ("unlabeled_scores_", *ROWS_OF_FIT):
        vars(light).pop(name, None)
    for name, value in vars(light).items():
        if isinstance(value, BatchDetector):  # of a DaskQMS22
            setattr(light, name, without_batch(value, method))
    return light


def for_workers(detector: BatchDetector) -> BatchDetector:
    """Copy a fitted detector to score parts of a table: the cluster decides about threads."""
    light: BatchDetector = without_batch(detector, "score_samples")
    light.n_jobs = None
    return light


def scorer(
    detector: BaseEstimator, columns: list[str], method: str, output: str
) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return a function that adds a column of scores to a part of a table.

    Raise ValueError if that function would fail on the workers.

    Parameters
    ----------
    detector : fitted detector
    columns : list of str
        The columns of the table.
    method : str
        The method that computes the scores.
    output : str
        The name of the new column.
    """
    check_is_fitted(detector)
    check_choice("method", method, ("score_samples", "decision_function", "predict"))
    if output in columns:
        raise ValueError(f"the table has a column {output!r} already; name another output")
    names = getattr(detector, "feature_names_in_", None)
    if names is None and len(columns) != detector.n_features_in_:
        raise ValueError(
            f"the table has {len(columns)} columns, but the detector was fitted on an array of "
            f"{detector.n_features_in_}; select those, or fit it on a data frame"
        )
    for name in [] if names is None else names:
        if name not in columns:
            raise ValueError(f"the table has no column {name!r}, which the detector needs")
    light = without_batch(detector, method)

    def add_scores(table: pd.DataFrame) -> pd.DataFrame:
        rows = table.to_numpy() if names is None else table[list(names)]
        scores = getattr(light, method)(rows) if len(table) else []
        return table.assign(**{output: scores})

    return add_scores
