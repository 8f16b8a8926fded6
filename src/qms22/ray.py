"""Detection on Ray datasets (``pip install "qms22[ray]"``).

Find the suspicious rows of a dataset with columns of any kind::

    import ray
    from qms22.ray import detect

    normal, batch = map(ray.data.read_parquet, ("s3://bucket/normal", "s3://bucket/rows"))
    found = detect(normal, batch, fdr=0.1)  # the batch with score, p_value and flagged
    found.write_parquet("s3://bucket/found")

Score a dataset with a fitted detector::

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

from qms22._runtime.packages import need

need("ray.data", "qms22.ray", "ray")

from qms22.cluster.ray import detect, score_samples

__all__ = ["detect", "score_samples"]
