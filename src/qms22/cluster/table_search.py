"""Detection on tables of a cluster: learn from draws, score and flag every row where it is.

The steps are those of `qms22.detect` with a false discovery rate, and so is the split: an encoder
and a detector learn from drawn normal rows that are not held out, and from a draw, in random order,
of the mixture of the batch and the held-out rows. Dask, Ray and Spark bring what `TableEngine` asks
for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Protocol, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qms22._runtime.chunks import draw_rows
from qms22._runtime.validation import check_choice, check_count, check_share
from qms22.cluster.scoring import for_workers
from qms22.detection.calibration import encode_split
from qms22.detection.encoding import EncodedTables, encode_tables
from qms22.detection.scorer import TableScorer, learn_checks
from qms22.estimators.calibration import count_held_out, warn_if_too_few
from qms22.estimators.conformal_counts import FlagLine, HeldOutRanks
from qms22.estimators.ensemble import QMS22Ensemble
from qms22.estimators.splits import check_not_held_out
from qms22.tables.columns.encoder_options import check_ignore

# Held-out rows are brought to one process with all their columns.
MOST_HELD_OUT = 200_000

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

    def count_p_values(self, table: TableT, split: SplitModel) -> NDArray[np.int64]:
        """Add up what ``split.count_p_values`` counts in all parts."""
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


def score_part(scorer: TableScorer, part: pd.DataFrame) -> NDArray[np.float64]:
    """Score rows of a table; higher is more suspicious.

    How often a row is there does not count: its copies may be in other parts.
    """
    return scorer.score(part, is_part=True).scores if len(part) else np.empty(0)


def refuse(others: Iterable[str]) -> None:
    """Raise TypeError for options that `detect` does not have on clusters."""
    for name in others:
        own = ", ".join(field.name for field in fields(SearchOptions))
        instead = _INSTEAD.get(name, f"the options are {own}")
        raise TypeError(f"detect on a cluster has no option {name!r}: {instead}")


@dataclass(frozen=True, eq=False)
class SplitModel:
    """What was learned without the held-out rows, and how these score."""

    scorer: TableScorer
    held_out: HeldOutRanks

    def count_p_values(self, part: pd.DataFrame) -> NDArray[np.int64]:
        """Count the rows with each p-value up to a half; see `HeldOutRanks`."""
        return self.held_out.count_p_values(score_part(self.scorer, part))


@dataclass(frozen=True, eq=False)
class BatchResults:
    """Scores, p-values and flags of the rows of a batch."""

    scorer: TableScorer
    split: SplitModel
    line: FlagLine

    def add_to(self, part: pd.DataFrame) -> pd.DataFrame:
        """Add the columns `RESULTS` to a part of the batch."""
        of_split = score_part(self.split.scorer, part)
        results = (
            score_part(self.scorer, part),
            self.split.held_out.p_values(of_split),
            of_split > self.line.above,
        )
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
    n_held_out = min(count_held_out(n_normal, n_batch), MOST_HELD_OUT)
    drawn = Draws(
        _draw(engine, normal, n_normal, n_held_out + options.max_samples, rng),
        _draw(engine, batch, n_batch, options.max_samples, rng),
        n_held_out,
        n_batch,
    )
    scorer = drawn.learn(options)
    split = drawn.learn_split(options, rng)
    counts = engine.count_p_values(batch, split)
    line = split.held_out.line(counts, n_batch, options.fdr)
    if not line.n_flagged:
        warn_if_too_few(n_batch, n_held_out, options.fdr, n_splits=1)
    return engine.add_results(batch, BatchResults(scorer, split, line))


def _draw(
    engine: TableEngine[TableT], table: TableT, n_rows: int, n: int, rng: np.random.RandomState
) -> pd.DataFrame:
    """Bring up to n rows into memory, in random order."""
    drawn = engine.draw(table, n_rows, min(n, n_rows), rng)
    return drawn.iloc[rng.permutation(len(drawn))].reset_index(drop=True)


@dataclass(frozen=True, eq=False)
class Draws:
    """Rows drawn from two tables.

    Parameters
    ----------
    normal : DataFrame
        Drawn normal rows in random order. The first `n_held_out` are the ones to hold out.
    batch : DataFrame
        Drawn rows of the batch in random order.
    n_held_out : int
    n_batch : int
        Rows of the whole batch.
    """

    normal: pd.DataFrame
    batch: pd.DataFrame
    n_held_out: int
    n_batch: int

    def learn(self, options: SearchOptions) -> TableScorer:
        """Learn from normal rows and the batch."""
        normal = self.normal[: options.max_samples]
        encoded = encode_tables(
            normal,
            self.batch,
            ignore=tuple(options.ignore),
            missing=options.missing,
            kinds=options.kinds,
            names=("rows drawn from the normal table", "rows drawn from the unlabeled table"),
        )
        return _fit(encoded, _unfitted(options, options.seed), options.seed or 0)

    def learn_split(self, options: SearchOptions, rng: np.random.RandomState) -> SplitModel:
        """Learn from normal rows that are not held out and a draw of the mixture."""
        held_out = self.normal[: self.n_held_out]
        known = self.normal[self.n_held_out :][: options.max_samples]
        drawn = draw_rows(self.n_batch + self.n_held_out, options.max_samples, rng)
        of_batch = self.batch[: np.count_nonzero(drawn < self.n_batch)]
        of_held_out = held_out.iloc[drawn[drawn >= self.n_batch] - self.n_batch]
        mixture = pd.concat([of_batch, of_held_out], ignore_index=True)
        mixture = mixture.iloc[rng.permutation(len(mixture))]
        detector = _unfitted(options, rng.randint(2**31 - 1))
        check_not_held_out(detector, len(known), self.n_held_out)
        encoded = encode_split(
            known,
            mixture,
            tuple(options.ignore),
            n_searched=len(of_batch),
            kinds=options.kinds,
        )
        scorer = _fit(encoded, detector, rng.randint(2**31 - 1))
        return SplitModel(scorer, HeldOutRanks.of(score_part(scorer, held_out), rng))


def _unfitted(options: SearchOptions, seed: int | None) -> QMS22Ensemble:
    return QMS22Ensemble(max_samples=None, random_state=seed, n_jobs=options.n_jobs)


def _fit(encoded: EncodedTables, detector: QMS22Ensemble, seed: int) -> TableScorer:
    """Fit a detector, and learn the checks of single cells; both treat rows of a mixture alike."""
    detector.fit(encoded.known, unlabeled=encoded.rows, groups=encoded.encoder.groups_)
    checks = learn_checks(encoded, seed)
    rows = checks.read(encoded.batch_cells, is_part=True)
    checks.weigh(checks.look(rows)[0])
    return TableScorer(encoded.encoder, for_workers(detector), checks)


def share_to_draw(n_drawn: int, n_rows: int) -> float | None:
    """Return a share of rows so that a draw of each with this probability has enough rows.

    Fewer than `n_drawn` of `n_rows` rows are six standard deviations away. None means all rows.
    """
    enough = n_drawn + 6 * np.sqrt(n_drawn) + 20
    return None if enough >= n_rows else float(enough / n_rows)


def sum_counts(parts: Iterable[pd.DataFrame], size: int) -> NDArray[np.int64]:
    """Add up what `sparse_counts` returned for all parts."""
    total = np.zeros(size, dtype=np.int64)
    for part in parts:
        np.add.at(total, part["rank"].to_numpy(), part["n_rows"].to_numpy())
    return total


def sparse_counts(counts: NDArray[np.int64]) -> pd.DataFrame:
    """Return counts other than 0 as a table."""
    ranks = np.flatnonzero(counts)
    return pd.DataFrame({"rank": ranks, "n_rows": counts[ranks]})
