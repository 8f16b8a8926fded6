"""Lazy scores of a Ray dataset, and detection on two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from ray.data import Dataset
from sklearn.base import BaseEstimator

from qms22._runtime.chunks import draw_rows
from qms22.cluster.scoring import scorer
from qms22.cluster.table_search import (
    BatchResults,
    SearchOptions,
    TableModel,
    refuse,
    search_table,
    share_to_draw,
    sparse_counts,
    sum_counts,
)
from qms22.estimators.ensemble import AUTO_SAMPLES


def score_samples(
    detector: BaseEstimator,
    dataset: Dataset,
    *,
    method: str = "score_samples",
    output: str = "score",
) -> Dataset:
    """Add a column of scores to a dataset, lazily.

    Parameters
    ----------
    detector : fitted detector
        A `QMS22` or any other detector with its methods. Fitted on a data frame, it takes the
        columns of those names and leaves others, such as an identifier, alone; fitted on an array,
        it takes all columns in their order.
    dataset : ray.data.Dataset
    method : {"score_samples", "decision_function", "predict"}
        The method that computes the scores.
    output : str
        The name of the new column.

    Returns
    -------
    ray.data.Dataset
    """
    add_scores = scorer(detector, dataset.columns() or [], method, output)
    return dataset.map_batches(add_scores, batch_format="pandas")


def detect(
    normal: Dataset,
    batch: Dataset,
    *,
    fdr: float = 0.1,
    ignore: Sequence[str] = (),
    missing: str = "impute",
    kinds: Mapping[str, str] | None = None,
    max_samples: int = AUTO_SAMPLES,
    seed: int | None = 0,
    n_jobs: int | None = None,
    **others: object,
) -> Dataset:
    """Find the suspicious rows of a dataset, given one of known-normal rows.

    Rows drawn at random are brought to the driver, which learns from them; tasks score all rows.

    Parameters
    ----------
    normal, batch : ray.data.Dataset
        The known-normal rows and the rows to search, with the same columns, of any kind.
    fdr, ignore, missing, kinds, max_samples, seed, n_jobs, **others
        As of `qms22.dask.detect`. A seed makes the result repeatable if Ray reads the rows in the
        same order each time (``preserve_order``).

    Returns
    -------
    ray.data.Dataset
        The batch with the columns "score" (higher is more suspicious), "p_value" and "flagged".
        The rows are scored twice: now, to count them, and when the result is read.
    """
    refuse(others)
    options = SearchOptions(fdr, ignore, missing, kinds, max_samples, seed, n_jobs)
    return search_table(_RayEngine(), normal, batch, options)


class _RayEngine:
    """What Ray does with datasets; see `TableEngine`."""

    def columns(self, table: Dataset) -> list[str]:
        return list(table.columns() or [])

    def count_rows(self, table: Dataset) -> int:
        return int(table.count())

    def draw(
        self, table: Dataset, n_rows: int, n_drawn: int, rng: np.random.RandomState
    ) -> pd.DataFrame:
        share = share_to_draw(n_drawn, n_rows)
        if share is not None:
            table = table.random_sample(share, seed=int(rng.randint(2**31 - 1)))
        rows = table.to_pandas(limit=n_rows)
        return rows.iloc[draw_rows(len(rows), n_drawn, rng)]

    def count_ranks(self, table: Dataset, model: TableModel) -> NDArray[np.int64]:
        counted = table.map_batches(partial(_count_ranks, model=model), batch_format="pandas")
        parts = counted.iter_batches(batch_size=None, batch_format="pandas")
        return sum_counts(parts, model.ruler)

    def add_results(self, table: Dataset, results: BatchResults) -> Dataset:
        return table.map_batches(results.add_to, batch_format="pandas")


def _count_ranks(part: pd.DataFrame, model: TableModel) -> pd.DataFrame:
    return sparse_counts(model.count_ranks(part))
