"""Detection on Ray datasets (``pip install "qms22[ray]"``).

The functions are those of `qms22.dask`::

    import ray
    from qms22.ray import detect

    normal, batch = map(ray.data.read_parquet, ("s3://bucket/normal", "s3://bucket/rows"))
    found = detect(normal, batch, fdr=0.1)  # a Detection, as in memory
    found.scored_batch().write_parquet("s3://bucket/found")  # lazy: score, p_value and flagged

Blocks are read once and stay in Ray's object store, which spills to disk. Ray keeps the order of
rows if its execution option ``preserve_order`` is set.

Restarts of a fit can also run on a Ray cluster, through joblib::

    from ray.util.joblib import register_ray

    register_ray()
    with joblib.parallel_config(backend="ray"):
        QMS22(n_restarts=8, n_jobs=8).fit(normal, unlabeled=batch)
"""

from qms22._runtime.packages import need

need("ray.data", "qms22.ray", "ray")

from qms22.cluster.search import ClusterDetection, detect, fit, score_samples

__all__ = ["ClusterDetection", "detect", "fit", "score_samples"]
