"""Lazy scores of a Ray dataset."""

from __future__ import annotations

from ray.data import Dataset
from sklearn.base import BaseEstimator

from qms22.cluster.scoring import scorer


def score_samples(
    detector: BaseEstimator,
    dataset: Dataset,
    *,
    method: str = "score_samples",
    output: str = "score",
) -> Dataset:
    """Add a column of scores to a dataset, lazily.

    Parameters
    ----------
    detector : fitted detector
        A `QMS22` or any other detector with its methods. Fitted on a data frame, it takes the
        columns of those names and leaves others, such as an identifier, alone; fitted on an array,
        it takes all columns in their order.
    dataset : ray.data.Dataset
    method : {"score_samples", "decision_function", "predict"}
        The method that computes the scores.
    output : str
        The name of the new column.

    Returns
    -------
    ray.data.Dataset
    """
    add_scores = scorer(detector, dataset.columns() or [], method, output)
    return dataset.map_batches(add_scores, batch_format="pandas")
