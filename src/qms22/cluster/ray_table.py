"""Ray datasets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

import pandas as pd
import ray
from ray.data import Dataset

from qms22.cluster.cluster_table import ClusterTable, PartTask


class RayTable(ClusterTable):
    """A Ray dataset; its parts are its blocks."""

    @cached_property
    def own_names(self) -> list[str]:
        """The columns, as the engine's table calls them."""
        return list(self._table.columns() or [])

    @cached_property
    def _parts(self) -> list[Any]:
        """References to the blocks as Arrow tables.

        They are read once and stay in Ray's object store: blocks have no number before.
        """
        return list(self._table.to_arrow_refs())

    def _run(self, task: PartTask, numbers: Collection[int] | None) -> Iterator[tuple[int, Any]]:
        shared, call = ray.put(task), ray.remote(_call)
        chosen = range(len(self._parts)) if numbers is None else sorted(numbers)
        of_parts = [call.remote(shared, number, self._parts[number]) for number in chosen]
        for number, results in zip(chosen, of_parts, strict=True):
            yield from ((number, result) for result in ray.get(results))

    def extend(self, task: PartTask, kinds: Mapping[str, type]) -> Dataset:
        """Return the dataset with more columns, lazily."""
        shared, parts = ray.put(task), self._parts

        def extend(batch: pd.DataFrame) -> pd.DataFrame:
            (number,) = batch["id"].tolist()
            (extended,) = _call(ray.get(shared), number, ray.get(parts[number]))
            return extended.reset_index(drop=True)

        numbers = ray.data.range(len(parts), override_num_blocks=len(parts))
        return numbers.map_batches(extend, batch_size=1, batch_format="pandas")


def _call(task: PartTask, number: int, part: Any) -> list[Any]:
    return list(task(number, iter([part.to_pandas()])))
