"""Detection on Dask data frames (``pip install "qms22[dask]"``).

Find the suspicious rows of a data frame with columns of any kind::

    import dask.dataframe as dd
    from distributed import Client
    from qms22.dask import detect

    client = Client("scheduler:8786")
    normal, batch = map(dd.read_parquet, ("s3://bucket/normal", "s3://bucket/rows"))
    found = detect(normal, batch, fdr=0.1)  # a Detection, as in memory
    found.report("found.html")
    found.scored_batch().to_parquet("s3://bucket/found")  # lazy: score, p_value and flagged

Where all columns are numbers, a detector can learn from a draw and score the rest on the workers::

    from qms22 import QMS22Ensemble
    from qms22.dask import fit, score_samples

    detector = fit(QMS22Ensemble(random_state=0), normal, batch)
    flagged = detector.flag(fdr=0.1)
    scored = score_samples(detector, dd.read_parquet("s3://bucket/more"))  # lazy

`score_samples` takes any fitted detector. Work is done by the default client of Dask, or by the
threads of this process if there is none. If a worker is lost, Dask computes its part again.
"""

from qms22._runtime.packages import need

need("distributed", "qms22.dask", "dask")

from qms22.cluster.search import ClusterDetection, detect, fit, score_samples

__all__ = ["ClusterDetection", "detect", "fit", "score_samples"]
