"""Dask data frames."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import dask
import dask.dataframe as dd
import pandas as pd
from dask.delayed import Delayed, delayed
from distributed.protocol import pickle

from qms22.cluster.cluster_table import ClusterTable, PartTask


class DaskTable(ClusterTable):
    """A Dask data frame; its parts are its partitions."""

    def __init__(self, table: dd.DataFrame, name: str, most_drawn: int | None = None) -> None:
        super().__init__(table.rename(columns=str), name, most_drawn)
        # Made once: Dask may join partitions of which fewer columns are read.
        self._parts = self._table.to_delayed()

    def _run(self, task: PartTask, numbers: Collection[int] | None) -> Iterator[tuple[int, Any]]:
        shared = _share(task)
        chosen = range(len(self._parts)) if numbers is None else sorted(numbers)
        calls = [delayed(_call)(shared, number, self._parts[number]) for number in chosen]
        for number, results in zip(chosen, dask.compute(*calls), strict=True):
            yield from ((number, result) for result in results)

    def extend(self, task: PartTask, kinds: Mapping[str, type]) -> dd.DataFrame:
        """Return the data frame with more columns, lazily."""
        shared = _share(task)
        parts = [delayed(_extend)(shared, *pair) for pair in enumerate(self._parts)]
        new = {name: pd.Series(dtype=kind) for name, kind in kinds.items()}
        meta = self._table._meta.assign(**new)
        return dd.from_delayed(parts, meta, self._table.divisions, verify_meta=False)


def _share(task: PartTask) -> Delayed:
    """Make a task one node of a graph, for all parts.

    The graph keeps it, so that no lost worker can lose it. Models compress to a third; Dask warns
    of graphs above ten megabytes.
    """
    return delayed(_unpack)(zlib.compress(pickle.dumps(task), level=1))


def _unpack(packed: bytes) -> Any:
    return pickle.loads(zlib.decompress(packed))


def _call(task: PartTask, number: int, part: pd.DataFrame) -> list[Any]:
    return list(task(number, iter([part])))


def _extend(task: PartTask, number: int, part: pd.DataFrame) -> pd.DataFrame:
    (extended,) = task(number, iter([part]))
    return extended.set_axis(part.index, axis=0)
