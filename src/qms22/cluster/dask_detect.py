"""Detection on Dask data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import delayed
from numpy.typing import NDArray

from qms22._runtime.chunks import draw_rows
from qms22.cluster.dask_scoring import share
from qms22.cluster.dask_table import add_up, positions_in_parts
from qms22.cluster.table_search import (
    BatchResults,
    SearchOptions,
    TableModel,
    refuse,
    search_table,
)
from qms22.estimators.ensemble import AUTO_SAMPLES


def detect(
    normal: dd.DataFrame,
    batch: dd.DataFrame,
    *,
    fdr: float = 0.1,
    ignore: Sequence[str] = (),
    missing: str = "impute",
    kinds: Mapping[str, str] | None = None,
    max_samples: int = AUTO_SAMPLES,
    seed: int | None = 0,
    n_jobs: int | None = None,
    **others: object,
) -> dd.DataFrame:
    """Find the suspicious rows of a data frame, given one of known-normal rows.

    Rows drawn at random are brought to the client, which learns an encoder and a `QMS22Ensemble`
    from them, and scores the normal ones among them as if it had not learned from them. The workers
    score all rows of the batch and compare them with these.

    Parameters
    ----------
    normal, batch : dask.dataframe.DataFrame
        The known-normal rows and the rows to search, with the same columns, of any kind (see
        `qms22.TabularEncoder`).
    fdr : float
        At most this share of the flagged rows is expected to be normal.
    ignore : sequence of str
        Columns to leave out, such as an identifier.
    missing : {"impute", "error"}
        What to do with missing values: impute the usual value, or raise an error.
    kinds : mapping of str to str, optional
        What columns are, where they are to be read in another way; as of `qms22.detect`.
    max_samples : int
        Learn from at most this many rows of each data frame. The batch is compared with 20,000
        normal rows or, if it is larger, with two for each of its rows, and at most 200,000.
    seed : int or None
        Seed of draws and shuffles; with None the result changes from run to run.
    n_jobs : int or None
        Threads of the fits on the client; -1 means all cores.
    **others
        Other options of `qms22.detect` are refused; the error says what to do instead.

    Returns
    -------
    dask.dataframe.DataFrame
        The batch with the columns "score" (higher is more suspicious), "p_value" and "flagged". The
        flagged rows are those with the highest scores, and the lowest p-values. The rows are scored
        twice: now, to count them, and when the result is computed.

    Notes
    -----
    As in `qms22.detect`, columns that only say when rows were made are left out, and checks of
    single cells raise the scores; only that a row is there several times is not noticed. The kinds
    of columns, their levels and usual values come from drawn rows; an error on a worker names a
    column that does not fit, to correct or to ignore. There are no reasons, findings and verdict:
    pass the flagged rows and a draw of the normal ones to `qms22.detect` for these.
    """
    refuse(others)
    options = SearchOptions(fdr, ignore, missing, kinds, max_samples, seed, n_jobs)
    for name, frame in (("normal", normal), ("batch", batch)):
        if not isinstance(frame, dd.DataFrame):
            raise TypeError(
                f"{name} must be a Dask data frame; got {type(frame).__name__}, for which there is "
                "qms22.detect"
            )
    return search_table(_DaskEngine(), normal, batch, options)


class _DaskEngine:
    """What Dask does with data frames; see `TableEngine`."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, ...]] = {}

    def columns(self, table: dd.DataFrame) -> list[str]:
        return [str(name) for name in table.columns]

    def count_rows(self, table: dd.DataFrame) -> int:
        sizes = tuple(table.map_partitions(len).compute())
        self._sizes[table._name] = sizes
        return sum(sizes)

    def draw(
        self, table: dd.DataFrame, n_rows: int, n_drawn: int, rng: np.random.RandomState
    ) -> pd.DataFrame:
        of_parts = positions_in_parts(draw_rows(n_rows, n_drawn, rng), self._sizes[table._name])
        pairs = zip(table.to_delayed(), of_parts, strict=True)
        drawn = dask.compute(*(delayed(_take)(part, own) for part, own in pairs if own.size))
        return pd.concat(drawn)

    def count_ranks(self, table: dd.DataFrame, model: TableModel) -> NDArray[np.int64]:
        shared = share(model)
        counts: NDArray[np.int64] = add_up(
            [delayed(_count_ranks)(part, shared) for part in table.to_delayed()]
        )
        return counts

    def add_results(self, table: dd.DataFrame, results: BatchResults) -> dd.DataFrame:
        meta = table._meta.assign(score=0.0, p_value=0.0, flagged=False)
        return table.map_partitions(_add_results, share(results), meta=meta)


def _take(part: pd.DataFrame, positions: NDArray[np.int64]) -> pd.DataFrame:
    return part.iloc[positions]


def _count_ranks(part: pd.DataFrame, model: TableModel) -> NDArray[np.int64]:
    return model.count_ranks(part)


def _add_results(part: pd.DataFrame, results: BatchResults) -> pd.DataFrame:
    return results.add_to(part)
