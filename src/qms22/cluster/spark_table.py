"""Spark data frames."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pandas as pd
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, DoubleType, LongType, StructField, StructType

from qms22.cluster.cluster_table import ClusterTable, PartTask

_KINDS = {float: DoubleType(), int: LongType(), bool: BooleanType()}


class SparkTable(ClusterTable):
    """A Spark data frame; its parts are its partitions."""

    def _run(self, task: PartTask, numbers: Collection[int] | None) -> Iterator[tuple[int, Any]]:
        def call(chunks: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            number = _number()
            if numbers is None or number in numbers:
                for at, result in enumerate(task(number, chunks)):
                    packed = cloudpickle.dumps(result)
                    yield pd.DataFrame({"part": [number], "at": [at], "result": [packed]})

        rows = self._table.mapInPandas(call, "part int, at int, result binary").collect()
        for row in sorted(rows, key=lambda row: (row.part, row.at)):
            yield row.part, cloudpickle.loads(row.result)

    def extend(self, task: PartTask, kinds: Mapping[str, type]) -> DataFrame:
        """Return the data frame with more columns, lazily."""
        new = [StructField(name, _KINDS[kind]) for name, kind in kinds.items()]
        schema = StructType([*self._table.schema.fields, *new])
        return self._table.mapInPandas(lambda chunks: task(_number(), chunks), schema)


def _number() -> int:
    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())
