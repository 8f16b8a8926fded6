"""Detection on Spark data frames (``pip install "qms22[spark]"``).

The functions are those of `qms22.dask`::

    from qms22.spark import detect

    normal, batch = map(spark.read.parquet, ("hdfs:///normal", "hdfs:///rows"))
    found = detect(normal, batch, fdr=0.1)  # a Detection, as in memory
    found.scored_batch().write.parquet("hdfs:///found")  # lazy: score, p_value and flagged

qms22 must be installed on the executors. The order of rows after a shuffle differs each time; cache
or write such tables first.
"""

from qms22._runtime.packages import need

need("pyspark.sql", "qms22.spark", "spark")

from qms22.cluster.search import ClusterDetection, detect, fit, score_samples

__all__ = ["ClusterDetection", "detect", "fit", "score_samples"]
