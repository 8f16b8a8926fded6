"""Scores of one batch of a large table, for any engine that hands out pandas data frames."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from qms22._runtime.validation import check_choice


def without_batch(detector: Any, method: str) -> Any:
    """Copy a fitted detector, to be sent to workers, without the rows and scores of its fit."""
    check_is_fitted(detector)
    if method != "score_samples":
        getattr(detector, "offset_", None)  # may be drawn only now, from these rows
    light = copy.copy(detector)
    for name in ("unlabeled_scores_", "_calibration"):
        vars(light).pop(name, None)
    return light


def scorer(detector: Any, method: str, output: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Make a function that adds a column of scores to a data frame.

    Parameters
    ----------
    detector : fitted detector
    method : str
        The method that gives the scores.
    output : str
        The name of the new column.
    """
    light = without_batch(detector, method)
    names = getattr(light, "feature_names_in_", None)

    def add_scores(table: pd.DataFrame) -> pd.DataFrame:
        # A detector that knows its columns by name leaves others alone, such as identifiers.
        rows = table.to_numpy() if names is None else table[list(names)]
        scores = getattr(light, method)(rows) if len(table) else []
        return table.assign(**{output: scores})

    return add_scores


def check_columns(detector: Any, columns: list[str], method: str, output: str) -> None:
    """Complain, before any work, of what would fail on the workers."""
    check_is_fitted(detector)
    check_choice("method", method, ("score_samples", "decision_function", "predict"))
    if output in columns:
        raise ValueError(f"the table has a column {output!r} already; name another output")
    names = getattr(detector, "feature_names_in_", None)
    if names is None:
        if len(columns) != detector.n_features_in_:
            raise ValueError(
                f"the table has {len(columns)} columns, but the detector was fitted on an array of "
                f"{detector.n_features_in_}; select those, or fit it on a data frame"
            )
        return
    missing = [name for name in names if name not in columns]
    if missing:
        raise ValueError(f"the table has no column {missing[0]!r}, which the detector needs")
