"""Score a Ray dataset with a fitted detector (``pip install "qms22[cluster]" "ray[data]"``).

::

    import ray
    from qms22 import QMS22
    from qms22.ray import score_samples

    detector = QMS22(random_state=0).fit(normal, unlabeled=sample)
    scored = score_samples(detector, ray.data.read_parquet("s3://bucket/rows"))
    scored.write_parquet("s3://bucket/scores")  # only now is anything read

Restarts run on a Ray cluster as well, through joblib::

    from ray.util.joblib import register_ray

    register_ray()
    with joblib.parallel_config(backend="ray"):
        QMS22(n_restarts=8, n_jobs=8).fit(normal, unlabeled=batch)
"""

from __future__ import annotations

from typing import Any

from ray.data import Dataset

from qms22.cluster.scoring import check_columns, scorer

__all__ = ["score_samples"]


def score_samples(
    detector: Any, dataset: Dataset, *, method: str = "score_samples", output: str = "score"
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
        The method that gives the scores.
    output : str
        The name of the new column.

    Returns
    -------
    ray.data.Dataset
    """
    check_columns(detector, dataset.columns() or [], method, output)
    return dataset.map_batches(scorer(detector, method, output), batch_format="pandas")
