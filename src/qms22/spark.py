"""Score a Spark data frame with a fitted detector (``pip install pyspark``).

::

    from qms22 import QMS22
    from qms22.spark import score_samples

    detector = QMS22(random_state=0).fit(normal, unlabeled=sample)
    scored = score_samples(detector, spark.read.parquet("hdfs:///rows"))
    scored.write.parquet("hdfs:///scores")  # only now is anything read

qms22 has to be installed on the executors too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from qms22.cluster.scoring import check_columns, scorer

__all__ = ["score_samples"]


def score_samples(
    detector: Any, frame: DataFrame, *, method: str = "score_samples", output: str = "score"
) -> DataFrame:
    """Add a column of scores to a data frame, lazily.

    Parameters
    ----------
    detector : fitted detector
        A `QMS22` or any other detector with its methods. Fitted on a data frame, it takes the
        columns of those names and leaves others, such as an identifier, alone; fitted on an array,
        it takes all columns in their order.
    frame : pyspark.sql.DataFrame
    method : {"score_samples", "decision_function", "predict"}
        The method that gives the scores.
    output : str
        The name of the new column.

    Returns
    -------
    pyspark.sql.DataFrame
    """
    check_columns(detector, frame.columns, method, output)
    kind = LongType() if method == "predict" else DoubleType()
    schema = StructType([*frame.schema.fields, StructField(output, kind)])
    add_scores = scorer(detector, method, output)

    def add_to_all(tables: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        return map(add_scores, tables)

    return frame.mapInPandas(add_to_all, schema)
