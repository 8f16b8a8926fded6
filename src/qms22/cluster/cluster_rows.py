"""Rows of numbers on the workers of a cluster, for detectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qms22._runtime.lazy_rows import LazyRows
from qms22._runtime.validation import check_part
from qms22.cluster.cluster_table import ClusterTable
from qms22.detection.streaming import rows_per_chunk


class ClusterRows(LazyRows):
    """The rows of a `ClusterTable` of numbers."""

    is_distributed = True
    is_on_gpu = False

    def __init__(self, table: ClusterTable) -> None:
        self.table, self._name = table, table.name

    @property
    def header(self) -> pd.DataFrame:
        """No rows, with the names of the columns."""
        return pd.DataFrame(columns=self.table.names, dtype=np.float64)

    def __len__(self) -> int:
        return self.table.n_rows

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of features."""
        return len(self), len(self.table.names)

    def read(
        self, which: slice | NDArray[np.integer[Any]], device: str = "cpu"
    ) -> NDArray[np.float64]:
        """Bring some rows to this process, as finite float64 values."""
        if isinstance(which, slice):
            which = np.arange(*which.indices(len(self)))
        return check_part(self.table.take(which), self._name)

    def select(self, positions: NDArray[np.intp]) -> LazyRows:
        """Bring some rows to this process."""
        return LazyRows(self.read(positions), self._name)

    def map(self, function: Callable[[NDArray[np.float64]], Any]) -> list[Any]:
        """Apply a function to chunks of rows on the workers."""
        name, n_rows = self._name, rows_per_chunk(self.shape[1])
        frames = self.table.map_frames(
            lambda chunk: function(check_part(chunk, name)), n_rows=n_rows
        )
        return list(frames)
