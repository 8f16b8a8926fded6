"""The whole job on files that may be larger than memory.

Rows are drawn from both files, encoder and detector learn from the draw, and every row of the batch
is scored, one part of its file after the other:

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> from sklearn.datasets import load_iris
>>> from qms22.detection.streaming import detect_files
>>> iris = load_iris(as_frame=True).data.rename(columns=lambda name: name.removesuffix(" (cm)"))
>>> with TemporaryDirectory() as folder:
...     normal, batch = Path(folder, "normal.parquet"), Path(folder, "batch.parquet")
...     iris[:40].to_parquet(normal)
...     iris[40:56].to_parquet(batch)
...     found = detect_files(normal, batch, max_samples=1000, k=6, seed=0)
>>> sorted(found.top.tolist())
[10, 11, 12, 13, 14, 15]

Memory holds the draw, one part of a file, the flagged rows, and eight bytes for each row of the
batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state, gen_batches

from qms22._runtime.chunks import draw_rows
from qms22._runtime.memory import memory_left
from qms22._runtime.progress import progress_bar
from qms22._runtime.validation import check_count
from qms22.detection.encoding import EncodedTables, encode_tables
from qms22.detection.run import (
    MOST_EXPLAINED,
    PRESETS,
    Detection,
    check_request,
    count_top,
    detect,
    explain_rows,
    with_results,
)
from qms22.estimators.batch_detector import BatchDetector
from qms22.estimators.thresholds import threshold
from qms22.tables import TableSource, TabularEncoder, open_table

if TYPE_CHECKING:
    import pandas as pd

    from qms22.models import SavedModel

Table: TypeAlias = str | Path | TableSource

# Rows to learn from, of each file. More of them hardly change the answer, but take their time.
DEFAULT_DRAW = 100_000
LEAST_DRAW = 1000

# Numbers in a part of a file.
_CELLS_PER_CHUNK = 1 << 19
_MOST_ROWS_PER_CHUNK = 1 << 16

# Work in memory takes up to eight times the size of the values, and of a draw no more than half of
# the memory should be needed.
_SHARE_OF_MEMORY = 1 / 8
_SHARE_FOR_DRAW = 1 / 16


@dataclass(frozen=True, eq=False)
class FileDetection:
    """What was found in the batch of a file.

    Parameters
    ----------
    source : TableSource
        The batch.
    flagged : Detection
        The flagged rows alone, most suspicious first, with their reasons. `positions` are their
        numbers in the file, and `normal` are the rows that the detector has learned from.
    scores : ndarray of shape (n_rows,)
        Of every row, in the order of the file; NaN where a row was dropped.
    p_values : ndarray of shape (n_rows,) or None
        Likewise, where rows were flagged by a false discovery rate.
    n_drawn : int
        How many rows of the batch the detector has learned from.
    """

    source: TableSource
    flagged: Detection
    scores: NDArray[np.float64]
    p_values: NDArray[np.float64] | None = None
    n_drawn: int = 0

    @property
    def top(self) -> NDArray[np.intp]:
        """The flagged rows by their numbers in the file, most suspicious first."""
        return self.flagged.positions

    @property
    def n_scored(self) -> int:
        """How many rows were scored: all, but for dropped ones."""
        return int(np.count_nonzero(~np.isnan(self.scores)))

    def excerpt(self, n_rows: int) -> Detection:
        """Give the flagged rows and the most suspicious others.

        Parameters
        ----------
        n_rows : int
            How many of them together, at least; all rows where there are no more.

        Returns
        -------
        Detection
        """
        n_others = min(n_rows, self.n_scored) - len(self.top)
        if n_others <= 0:
            return self.flagged
        others = self.scores.copy()
        others[self.top] = np.nan
        positions = np.concatenate([self.top, most_suspicious(others, n_others)])
        return Detection(
            self.flagged.encoder,
            self.flagged.detector,
            self.flagged.normal,
            self.source.take(positions),
            positions,
            self.scores[positions],
            np.arange(len(self.top)),
            self.flagged.reasons,
            None if self.p_values is None else self.p_values[positions],
            self.flagged.contamination,
        )

    def tables(self, id_column: str | None = None) -> Iterator[pd.DataFrame]:
        """Give all rows in the order of the file, one part after the other.

        Parameters
        ----------
        id_column : str, optional
            A column that names the rows; their number in the file where not given.

        Yields
        ------
        DataFrame
            The columns that `Detection.table` gives. Ranks take twelve bytes more for each row of
            the batch.
        """
        ranks = _Ranks(self.scores, self.top)
        explained = {
            int(row): "; ".join(map(str, why))
            for row, why in zip(self.top, self.flagged.reasons, strict=False)
        }
        n_rows = _rows_per_chunk(len(self.source.names))
        for table in self.source.chunks(n_rows=n_rows, exact=True):
            rows = np.arange(table.index[0], table.index[-1] + 1)
            is_scored = ~np.isnan(self.scores[rows])
            rows = rows[is_scored]
            flagged = np.isin(rows, self.top)
            reasons = np.full(len(rows), "", dtype=object)
            reasons[flagged] = [explained.get(row, "") for row in rows[flagged].tolist()]
            yield with_results(
                table[is_scored].reset_index(drop=True),
                id_column,
                rank=ranks.of_next(rows, flagged),
                row=rows,
                score=self.scores[rows],
                flagged=flagged,
                reasons=reasons,
                p_value=None if self.p_values is None else self.p_values[rows],
            )


class _Ranks:
    """Ranks of rows from 1: the flagged ones, then the others by their scores, then by position.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        NaN where a row has no rank.
    top : ndarray of int
        The flagged rows, most suspicious first.
    """

    def __init__(self, scores: NDArray[np.float64], top: NDArray[np.intp]) -> None:
        self._scores = scores
        self._of_top = dict(zip(top.tolist(), range(1, len(top) + 1), strict=True))
        others = scores.copy()
        others[top] = np.nan
        others.sort()  # those without a rank come last
        self._ascending = others[: np.searchsorted(others, np.nan)]
        # How many rows of each score, which is counted where it first occurs, have a rank by now.
        self._n_ranked = np.zeros(len(self._ascending) + 1, dtype=np.int32)

    def of_next(self, rows: NDArray[np.intp], flagged: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Rank rows, of which some are flagged; over all calls each comes once, and they ascend."""
        ranks = np.empty(len(rows), dtype=np.intp)
        ranks[flagged] = [self._of_top[row] for row in rows[flagged].tolist()]
        scores = self._scores[rows[~flagged]]
        first, end = (np.searchsorted(self._ascending, scores, side) for side in ("left", "right"))
        _, group, counts = np.unique(first, return_inverse=True, return_counts=True)
        # The number of rows before a row of the same score, here: its place when sorted by group.
        place = np.empty(len(first), dtype=np.intp)
        place[np.argsort(group, kind="stable")] = np.arange(len(first))
        n_here = place - (np.cumsum(counts) - counts)[group]
        n_higher = len(self._of_top) + len(self._ascending) - end
        ranks[~flagged] = 1 + n_higher + self._n_ranked[first] + n_here
        np.add.at(self._n_ranked, first, 1)
        return ranks


def detect_files(
    normal: Table,
    unlabeled: Table,
    *,
    max_samples: int | None = None,
    k: int | None = None,
    fdr: float | None = None,
    ignore: Sequence[str] = (),
    missing: str = "error",
    preset: str = "recommended",
    seed: int | None = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> FileDetection:
    """Find the most suspicious rows of a file, knowing those of another one to be normal.

    Where both files have at most `max_samples` rows the result is that of `qms22.detection.detect`,
    to the bit.

    Parameters
    ----------
    normal, unlabeled : path or TableSource
        Files of any kind that `qms22.tables.read_table` takes, with the same columns. Parquet,
        Arrow and text files are never in memory as a whole.
    max_samples : int, optional
        Rows of each file to learn from: 100,000 where not given, or fewer where memory is short.
        Kinds of columns, levels and usual values are told from the normal rows among them.
    k : int, optional
        How many rows to flag; 50 where not given, or all if there are fewer.
    fdr : float, optional
        As of `qms22.detection.detect`. It needs every row of the batch among those drawn.
    ignore, missing, preset, n_jobs, verbose
        As of `qms22.detection.detect`.
    seed : int or None
        Draws and shuffles; None gives another result each time.

    Returns
    -------
    FileDetection
    """
    check_request(k, fdr, preset)
    if max_samples is not None:
        check_count("max_samples", max_samples)
    known, batch = _opened(normal), _opened(unlabeled)
    for source in (batch, known):
        source.check()
    if max_samples is None:
        max_samples = _draw_that_fits(len(batch.names))
    count_top(k, batch.n_rows)
    if fdr is not None and batch.n_rows > max_samples:
        raise ValueError(
            f"a false discovery rate needs all {batch.n_rows} rows of {batch.path} in the fit, and "
            f"only {max_samples} are drawn; say how many rows to flag instead, or draw them all"
        )
    rng = check_random_state(seed)
    normal_rows = known.take(draw_rows(known.n_rows, max_samples, rng))
    drawn = batch.take(draw_rows(batch.n_rows, max_samples, rng))
    is_whole = len(normal_rows) == known.n_rows and len(drawn) == batch.n_rows
    if fdr is not None:
        whole = detect(
            normal_rows,
            drawn,
            fdr=fdr,
            ignore=ignore,
            missing=missing,
            preset=preset,
            seed=seed,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        return _from_memory(batch, whole)
    encoded = _encode(normal_rows, drawn, ignore, missing, is_whole)
    del normal_rows, drawn
    detector = PRESETS[preset](
        contamination=min(count_top(k, batch.n_rows), len(encoded.batch)),
        random_state=seed,
        n_jobs=n_jobs,
        verbose=verbose,
    ).fit(encoded.known, unlabeled=encoded.rows)
    scores = _scored(batch, encoded.encoder, detector, verbose)
    n_scored = int(np.count_nonzero(~np.isnan(scores)))
    k = count_top(k, n_scored)
    best = most_suspicious(scores, min(k + 1, n_scored))
    # New rows are judged by the line that flags as many of all rows.
    detector.offset_ = -threshold(scores[best], k)
    flagged = _explained(batch, encoded.encoder, detector, encoded.normal, scores, best[:k])
    return FileDetection(batch, flagged, scores, n_drawn=len(encoded.batch))


def score_file(
    model: SavedModel, table: Table, *, k: int | None = None, verbose: int = 0
) -> FileDetection:
    """Score the rows of a file by a saved model.

    Parameters
    ----------
    model : SavedModel
        With an encoder, as `qms22 detect --save-model` writes it.
    table : path or TableSource
        A file of any kind that `qms22.tables.read_table` takes.
    k : int, optional
        How many rows to flag; those beyond the detector's line where not given.
    verbose : int
        Above 0 a progress bar is shown on standard error.

    Returns
    -------
    FileDetection
    """
    encoder, detector = model.encoder, model.detector
    if encoder is None:
        raise ValueError("the model has no encoder for tables; make one by 'qms22 detect'")
    batch = _opened(table)
    batch.check()
    encoder.check_columns(batch.names)
    scores = _scored(batch, encoder, detector, verbose)
    n_scored = int(np.count_nonzero(~np.isnan(scores)))
    if k is None:
        k = sum(
            int(np.count_nonzero(-scores[part] - detector.offset_ < 0))
            for part in gen_batches(len(scores), _MOST_ROWS_PER_CHUNK)
        )
    elif k > n_scored:
        raise ValueError(f"k={k} is more than the {n_scored} rows there are")
    top = most_suspicious(scores, k)
    return FileDetection(batch, _explained(batch, encoder, detector, None, scores, top), scores)


def is_large(*tables: Table) -> bool:
    """Tell whether work on these files, read whole, might not fit into memory.

    Parameters
    ----------
    *tables : path or TableSource
        A faulty file does not count.

    Returns
    -------
    bool
    """
    n_bytes = 0
    for table in tables:
        if isinstance(table, str | Path) and not Path(table).is_file():
            continue  # opening a pipe would use it up
        with suppress(ValueError):  # which whoever reads the file will meet again
            n_bytes += _opened(table).n_bytes
    left = memory_left()
    return left is not None and n_bytes > _SHARE_OF_MEMORY * left


def most_suspicious(scores: NDArray[np.float64], k: int) -> NDArray[np.intp]:
    """Give the positions of the k highest scores, highest first; at ties the lower position first.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        NaN for rows that do not count.
    k : int

    Returns
    -------
    ndarray of shape (k,)
    """
    best = np.empty(0, dtype=np.intp)
    for part in gen_batches(len(scores), max(k, _MOST_ROWS_PER_CHUNK)):
        best = np.concatenate([best, np.arange(part.start, part.stop)])
        best = best[np.argsort(-scores[best], kind="stable")[:k]]
    return best


def _opened(table: Table) -> TableSource:
    return table if isinstance(table, TableSource) else open_table(table)


def _draw_that_fits(n_columns: int) -> int:
    left = memory_left()
    if left is None:
        return DEFAULT_DRAW
    n_rows = int(_SHARE_FOR_DRAW * left / (2 * 8 * n_columns))
    return int(np.clip(n_rows, LEAST_DRAW, DEFAULT_DRAW))


def _encode(
    normal: pd.DataFrame,
    unlabeled: pd.DataFrame,
    ignore: Sequence[str],
    missing: str,
    is_whole: bool,
) -> EncodedTables:
    try:
        return encode_tables(normal, unlabeled, ignore=ignore, missing=missing)
    except ValueError as error:
        if is_whole:
            raise
        raise ValueError(f"among the rows drawn, {error}") from error


def _scored(
    source: TableSource, encoder: TabularEncoder, detector: BatchDetector, verbose: int
) -> NDArray[np.float64]:
    """Score every row; NaN where one is dropped."""
    scores = np.full(source.n_rows, np.nan)
    used = list(encoder.groups_)
    n_rows = _rows_per_chunk(len(encoder.typical_row_))
    began = time.perf_counter()
    with progress_bar("scoring", source.n_rows, enabled=verbose > 0) as show:
        for chunk in source.chunks(used, n_rows):
            first, last = int(chunk.index[0]), int(chunk.index[-1])
            try:
                usable, rows = encoder.transform_part(chunk)
            except ValueError as error:
                if len(chunk) == source.n_rows:
                    raise
                raise ValueError(f"{source.path}, rows {first} to {last}: {error}") from error
            if len(usable):
                scores[first + usable] = -detector.score_samples(rows)
            speed = (last + 1) / (time.perf_counter() - began)
            show(last + 1, f"{speed:,.0f} rows/s")
    if np.isnan(scores).all():
        raise ValueError("every unlabeled row has missing values; impute them instead")
    return scores


def _explained(
    source: TableSource,
    encoder: TabularEncoder,
    detector: BatchDetector,
    normal: pd.DataFrame | None,
    scores: NDArray[np.float64],
    top: NDArray[np.intp],
) -> Detection:
    """Read the flagged rows and find their reasons."""
    order = np.arange(len(top))
    if len(top):
        table = source.take(top)
        _, rows = encoder.transform_part(table.iloc[:MOST_EXPLAINED])
        reasons = explain_rows(detector, encoder, table, rows, order[:MOST_EXPLAINED])
    else:
        table, reasons = next(source.chunks(n_rows=1)).iloc[:0], []
    known = table.iloc[:0] if normal is None else normal
    return Detection(encoder, detector, known, table, top, scores[top], order, reasons)


def _from_memory(source: TableSource, found: Detection) -> FileDetection:
    """Say of a file what was found in memory."""
    n_rows = source.n_rows
    scores, p_values = np.full(n_rows, np.nan), np.full(n_rows, np.nan)
    scores[found.positions] = found.scores
    assert found.p_values is not None  # wherever rows were flagged by a false discovery rate
    p_values[found.positions] = found.p_values
    flagged = Detection(
        found.encoder,
        found.detector,
        found.normal,
        found.unlabeled.iloc[found.top],
        found.positions[found.top],
        found.scores[found.top],
        np.arange(len(found.top)),
        found.reasons,
        found.p_values[found.top],
        found.contamination,
    )
    return FileDetection(source, flagged, scores, p_values, n_rows)


def _rows_per_chunk(n_columns: int) -> int:
    return int(np.clip(_CELLS_PER_CHUNK // max(n_columns, 1), 1, _MOST_ROWS_PER_CHUNK))
