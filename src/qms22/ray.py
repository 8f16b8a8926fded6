"""Score a Ray dataset with a fitted detector (``pip install "qms22[cluster]" "ray[data]"``).

::

    import ray
    from qms22 import QMS22
    from qms22.ray import score_samples

    detector = QMS22(random_state=0).fit(normal, unlabeled=sample)
    scored = score_samples(detector, ray.data.read_parquet("s3://bucket/rows"))
    scored.write_parquet("s3://bucket/scores")  # reads and scores the rows

Restarts of a fit can also run on a Ray cluster, through joblib::

    from ray.util.joblib import register_ray

    register_ray()
    with joblib.parallel_config(backend="ray"):
        QMS22(n_restarts=8, n_jobs=8).fit(normal, unlabeled=batch)
"""

from qms22.cluster.ray import score_samples

__all__ = ["score_samples"]
