"""Detection on Spark data frames (``pip install "qms22[spark]"``).

Find the suspicious rows of a data frame with columns of any kind::

    from qms22.spark import detect

    normal, batch = map(spark.read.parquet, ("hdfs:///normal", "hdfs:///rows"))
    found = detect(normal, batch, fdr=0.1)  # the batch with score, p_value and flagged
    found.write.parquet("hdfs:///found")

Score a data frame with a fitted detector::

    from qms22 import QMS22
    from qms22.spark import score_samples

    detector = QMS22(random_state=0).fit(normal, unlabeled=sample)
    scored = score_samples(detector, spark.read.parquet("hdfs:///rows"))
    scored.write.parquet("hdfs:///scores")  # reads and scores the rows

qms22 must be installed on the executors.
"""

from qms22._runtime.packages import need

need("pyspark.sql", "qms22.spark", "spark")

from qms22.cluster.spark import detect, score_samples

__all__ = ["detect", "score_samples"]
