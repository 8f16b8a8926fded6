"""Detection on tables of a cluster: learn from draws, score and flag every row where it is.

The steps are those of `qms22.detect` with a false discovery rate. An encoder, a detector and checks
learn from drawn rows, and drawn normal rows are scored as if they were not learned from. The parts
of the batch are scored where they are and compared with these; the counts of their ranks are added
up and decide. Dask, Ray and Spark bring what `TableEngine` asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qms22._runtime.validation import check_choice, check_count, check_share
from qms22._runtime.warn import warn_user
from qms22.cluster.scoring import for_workers
from qms22.decisions.ruler import Ruler, highest_flagged_rank
from qms22.detection.comparison import Comparison
from qms22.detection.encoding import encode_tables
from qms22.detection.scorer import TableScorer, fit_detector, learn_checks, measure_normal
from qms22.estimators.decisions import why_none
from qms22.estimators.ensemble import QMS22Ensemble, rows_to_compare
from qms22.tables import TabularEncoder, open_table
from qms22.tables.columns.encoder_options import check_ignore

# Rows to compare with are brought to one process with all their columns.
MOST_COMPARED = 200_000

# The columns that are added to a batch.
RESULTS = ("score", "p_value", "flagged")

# Options of `qms22.detect` that clusters do not have, and what to do instead.
_INSTEAD = {
    "k": "flags come from fdr here; take the rows with the highest 'score' of the result",
    "id": "add the column to ignore; the result has all columns of the batch",
    "marks": "take the marked rows out of the batch, or pass a part of it to qms22.detect",
    "preset": "it always learns a QMS22Ensemble; qms22.dask.DaskQMS22 is the preset 'paper'",
    "device": "workers score on their CPUs; qms22.detect works on a GPU",
    "verbose": "the cluster shows its own progress",
    "history": "qms22.detect remembers batches",
    "accept": "qms22.detect remembers batches",
}

TableT = TypeVar("TableT")


class TableEngine(Protocol[TableT]):
    """What a cluster does with tables."""

    def columns(self, table: TableT) -> list[str]:
        """Return the names of the columns."""
        ...

    def count_rows(self, table: TableT) -> int:
        """Count the rows."""
        ...

    def draw(
        self, table: TableT, n_rows: int, n_drawn: int, rng: np.random.RandomState
    ) -> pd.DataFrame:
        """Bring rows into memory that are drawn without replacement, in any order."""
        ...

    def count_ranks(self, table: TableT, model: TableModel) -> NDArray[np.int64]:
        """Add up what ``model.count_ranks`` counts in all parts."""
        ...

    def add_results(self, table: TableT, results: BatchResults) -> TableT:
        """Add the columns `RESULTS`, lazily."""
        ...


@dataclass(frozen=True)
class SearchOptions:
    """Options of a detection; see `qms22.dask.detect`."""

    fdr: float
    ignore: Sequence[str]
    missing: str
    kinds: Mapping[str, str] | None
    max_samples: int
    seed: int | None
    n_jobs: int | None

    def __post_init__(self) -> None:
        check_share("fdr", self.fdr)
        check_choice("missing", self.missing, ("error", "impute"))
        check_count("max_samples", self.max_samples)
        check_ignore(self.ignore)


def refuse(others: Iterable[str]) -> None:
    """Raise TypeError for options that `detect` does not have on clusters."""
    for name in others:
        own = ", ".join(field.name for field in fields(SearchOptions))
        instead = _INSTEAD.get(name, f"the options are {own}")
        raise TypeError(f"detect on a cluster has no option {name!r}: {instead}")


@dataclass(frozen=True, eq=False)
class TableModel:
    """What was learned from the drawn rows, and how normal rows score.

    Parameters
    ----------
    scorer : TableScorer
    ruler : Ruler
        Of drawn normal rows.
    """

    scorer: TableScorer
    ruler: Ruler

    def score(self, part: pd.DataFrame) -> NDArray[np.float64]:
        """Score rows of the batch; higher is more suspicious.

        How often a row is there does not count: its copies may be in other parts.
        """
        return self.scorer.score(part, is_part=True).scores if len(part) else np.empty(0)

    def count_ranks(self, part: pd.DataFrame) -> NDArray[np.int64]:
        """Count the rows with each rank; see `Ruler`."""
        return self.ruler.count(self.score(part))


@dataclass(frozen=True, eq=False)
class BatchResults:
    """Scores, p-values and flags of the rows of a batch.

    Parameters
    ----------
    model : TableModel
    highest_flagged : int
        The highest rank that is flagged.
    """

    model: TableModel
    highest_flagged: int

    def add_to(self, part: pd.DataFrame) -> pd.DataFrame:
        """Add the columns `RESULTS` to a part of the batch."""
        scores = self.model.score(part)
        compared = Comparison.of(self.model.ruler, scores)
        results = (scores, compared.p_values, compared.ranks <= self.highest_flagged)
        return part.assign(**dict(zip(RESULTS, results, strict=True)))


def search_table(
    engine: TableEngine[TableT], normal: TableT, batch: TableT, options: SearchOptions
) -> TableT:
    """Find the suspicious rows of a batch; return it with the columns `RESULTS`."""
    for name in RESULTS:
        if name in engine.columns(batch):
            raise ValueError(
                f"the batch has a column {name!r}, which is the name of a result; rename it"
            )
    n_normal, n_batch = engine.count_rows(normal), engine.count_rows(batch)
    for name, n_rows in (("the normal table", n_normal), ("the unlabeled table", n_batch)):
        if not n_rows:
            raise ValueError(f"{name} has no rows; give at least one")
    rng = np.random.RandomState(options.seed)
    n_known = max(options.max_samples, min(rows_to_compare(n_batch), MOST_COMPARED))
    drawn_normal = _draw(engine, normal, n_normal, n_known, rng)
    drawn_batch = _draw(engine, batch, n_batch, options.max_samples, rng)
    model = learn(drawn_normal, drawn_batch, n_batch, options)
    highest = highest_flagged_rank(engine.count_ranks(batch, model), options.fdr)
    if highest < 0 and (why := why_none(n_batch, model.ruler.n_known, options.fdr)):
        warn_user(why)
    return engine.add_results(batch, BatchResults(model, highest))


def _draw(
    engine: TableEngine[TableT], table: TableT, n_rows: int, n: int, rng: np.random.RandomState
) -> pd.DataFrame:
    """Bring up to n rows into memory."""
    return engine.draw(table, n_rows, min(n, n_rows), rng).reset_index(drop=True)


def learn(
    normal: pd.DataFrame, batch: pd.DataFrame, n_batch: int, options: SearchOptions
) -> TableModel:
    """Learn from drawn rows, and score the normal ones like rows of the batch.

    Parameters
    ----------
    normal, batch : DataFrame
        Drawn rows. The detector learns from at most ``options.max_samples`` of each.
    n_batch : int
        Rows of the whole batch.
    options : SearchOptions
    """
    encoded = encode_tables(
        open_table(normal).columns(),
        open_table(batch).columns(),
        TabularEncoder(ignore=tuple(options.ignore), missing=options.missing, kinds=options.kinds),
        names=("rows drawn from the normal table", "rows drawn from the unlabeled table"),
        is_whole=len(batch) == n_batch,
    )
    detector = _unfitted(options)
    fit_detector(detector, encoded, options.max_samples)
    learned = learn_checks(encoded, options.seed or 0, is_part=True)
    scorer = TableScorer(encoded.encoder, detector, learned.checks)
    scores = scorer.score_batch(encoded, is_part=True).scores
    ruler = measure_normal(scorer, encoded, learned, scores, n_batch, options.seed or 0)
    assert ruler is not None  # an ensemble has one
    return TableModel(replace(scorer, detector=for_workers(detector)), ruler)


def _unfitted(options: SearchOptions) -> QMS22Ensemble:
    # The threshold for new rows is not used.
    return QMS22Ensemble(contamination=1, random_state=options.seed, n_jobs=options.n_jobs)


def share_to_draw(n_drawn: int, n_rows: int) -> float | None:
    """Return a share of rows so that a draw of each with this probability has enough rows.

    Fewer than `n_drawn` of `n_rows` rows are six standard deviations away. None means all rows.
    """
    enough = n_drawn + 6 * np.sqrt(n_drawn) + 20
    return None if enough >= n_rows else float(enough / n_rows)


def sum_counts(parts: Iterable[pd.DataFrame], ruler: Ruler) -> NDArray[np.int64]:
    """Add up what `sparse_counts` returned for all parts."""
    total = np.zeros(ruler.n_known + 1, dtype=np.int64)
    for part in parts:
        np.add.at(total, part["rank"].to_numpy(), part["n_rows"].to_numpy())
    return total


def sparse_counts(counts: NDArray[np.int64]) -> pd.DataFrame:
    """Return counts other than 0 as a table."""
    ranks = np.flatnonzero(counts)
    return pd.DataFrame({"rank": ranks, "n_rows": counts[ranks]})
