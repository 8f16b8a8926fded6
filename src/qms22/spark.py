"""Score a Spark data frame with a fitted detector (``pip install pyspark``).

::

    from qms22 import QMS22
    from qms22.spark import score_samples

    detector = QMS22(random_state=0).fit(normal, unlabeled=sample)
    scored = score_samples(detector, spark.read.parquet("hdfs:///rows"))
    scored.write.parquet("hdfs:///scores")  # reads and scores the rows

qms22 must be installed on the executors.
"""

from qms22.cluster.spark import score_samples

__all__ = ["score_samples"]
