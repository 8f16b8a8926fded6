"""The result of a detection, and the tables and the page made from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qms22 import __version__
from qms22._runtime.validation import check_count
from qms22.checks import OddCells, TableChecks
from qms22.decisions.verdict import Verdict
from qms22.detection.comparison import Comparison
from qms22.detection.findings.finding import Finding
from qms22.detection.history.history_file import HistoryEntry
from qms22.detection.marks.normal_rows import rows_to_check
from qms22.detection.marks.table_marks import TableMarks
from qms22.detection.reasons.row_reasons import RowReason
from qms22.detection.result_columns import shown_ranks, without_clashes
from qms22.detection.result_files import write_tables
from qms22.detection.result_text import flags_text, notebook_text, remark
from qms22.detection.search_options import preset_of
from qms22.detection.streaming import rows_per_chunk
from qms22.estimators.batch_detector import BatchDetector
from qms22.estimators.decisions import why_none
from qms22.estimators.ensemble import QMS22Ensemble
from qms22.models import save_model
from qms22.tables import Table, TabularEncoder
from qms22.tables.columns.cells import Columns
from qms22.tables.databases.database_place import DatabasePlace, find_database

if TYPE_CHECKING:
    import pandas as pd

_ROWS_IN_NOTEBOOK = 10


@dataclass(frozen=True, eq=False, repr=False)
class Detection:
    """What was found in a batch of rows.

    Arrays have one entry per row of the batch, in its order.

    Parameters
    ----------
    source : Table
        The batch.
    encoder : TabularEncoder
    detector : QMS22Ensemble or QMS22
    scores : ndarray of shape (n_rows,)
        Higher is more suspicious; NaN where a row was dropped for missing values.
    flagged : ndarray of bool of shape (n_rows,)
    reasons : dict from int to list of RowReason
        By position: why a row is suspicious, the strongest reason first. Flagged rows are
        explained, but no more than 1,000 rows in all.
    normal_table : Table or None
        The known-normal table; None where a saved model was applied.
    normal_positions : ndarray of int or None
        Positions of the rows of it that were learned from.
    comparison : Comparison or None
        Where the rows stand among the known-normal rows; `p_values` and `false_at_most` read it.
        None where a saved model was applied, and for the preset "paper".
    fdr : float or None
        The false discovery rate, if rows were flagged by one.
    id : str or None
        The column that names the rows.
    n_drawn : int
        How many rows of the batch were learned from.
    marks : TableMarks or None
        What was known about rows, if marks were given. Rows marked as anomalies or as normal are
        not searched: they have no score, no p-value and no flag.
    verdict : Verdict or None
        Whether the batch is fine, contains anomalies or has drifted, and which columns moved; None
        where a saved model was applied. For the preset "paper" only columns and their extreme
        values are compared.
    checks : TableChecks or None
        What was learned about single cells. It says more about rows than `reasons` does.
    odd : OddCells or None
        The checks in which each row is the oddest.
    findings : tuple of Finding
        Flagged rows that are anomalous in the same way, the largest group first.
    notes : tuple of str
        How the tables were read and used: guesses, missing cells, columns that were left out.
    history : tuple of HistoryEntry
        What was found in the batches of the history, if there is one: this batch is the last.
    columns : tuple of dict from str to Cells, or None
        The columns of all known-normal rows and of all rows of the batch, as the encoder
        understands them, if all were learned from.
    """

    source: Table
    encoder: TabularEncoder
    detector: BatchDetector
    scores: NDArray[np.float64]
    flagged: NDArray[np.bool_]
    reasons: dict[int, list[RowReason]]
    normal_table: Table | None = None
    normal_positions: NDArray[np.intp] | None = None
    comparison: Comparison | None = None
    fdr: float | None = None
    id: str | None = None
    n_drawn: int = 0
    marks: TableMarks | None = None
    verdict: Verdict | None = None
    checks: TableChecks | None = None
    odd: OddCells | None = None
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    history: tuple[HistoryEntry, ...] = ()
    columns: tuple[Columns, Columns] | None = None

    @cached_property
    def normal(self) -> pd.DataFrame | None:
        """The known-normal rows that were learned from; None where a saved model was applied."""
        if self.normal_table is None or self.normal_positions is None:
            return None
        return self.normal_table.take(self.normal_positions)

    @property
    def n_normal(self) -> int:
        """Number of known-normal rows that were learned from."""
        return 0 if self.normal_positions is None else len(self.normal_positions)

    @property
    def n_scored(self) -> int:
        """Number of rows with a score: all but those that were dropped or are marked."""
        return int(np.count_nonzero(~np.isnan(self.scores)))

    @property
    def n_dropped(self) -> int:
        """Number of rows that were dropped for missing values."""
        return len(self.scores) - self.n_scored - self.n_marked

    @property
    def n_marked(self) -> int:
        """Number of rows that were not searched, as they are marked as anomalies or as normal."""
        return len(self._marked)

    @property
    def _marked(self) -> NDArray[np.intp]:
        """Positions of the rows that were not searched: known anomalies, then normal rows."""
        return np.empty(0, dtype=np.intp) if self.marks is None else self.marks.decided

    @property
    def ranking(self) -> NDArray[np.intp]:
        """Positions of the scored rows, most suspicious first; at ties the lower position."""
        return np.argsort(-self.scores, kind="stable")[: self.n_scored]

    @property
    def top(self) -> NDArray[np.intp]:
        """Positions of the flagged rows, most suspicious first."""
        return self.ranking[: self.n_flagged]

    @property
    def n_flagged(self) -> int:
        """Number of flagged rows."""
        return int(np.count_nonzero(self.flagged))

    @property
    def answer(self) -> str:
        """How many rows are flagged, and how many of these are normal at most: a sentence."""
        n_false = None if self.comparison is None else self.false_at_most()
        return flags_text(self.n_flagged, self.n_scored, self.fdr, n_false)

    @property
    def remark(self) -> str:
        """What to know about the flagged rows, or why there are none; may be empty."""
        if self.n_flagged:
            return remark(self.verdict, self.fdr, is_drift_scored=self.is_drift_scored)
        if self.fdr is None or self.comparison is None:
            return ""
        why = why_none(self.n_scored, self.comparison.ruler.n_known, self.fdr)
        if why is None:
            return ""
        # That no row is flagged, `answer` says.
        words = why.removeprefix("no row is flagged: ")
        return f"{words[0].upper()}{words[1:]}."

    @property
    def p_values(self) -> NDArray[np.float64] | None:
        """The p-value of every row, in the order of the scores; NaN for rows without a score."""
        return None if self.comparison is None else self.comparison.p_values

    def false_at_most(self, k: int | None = None) -> int:
        """Return how many of the first k rows of the ranking are normal at most (90 % sure).

        The bounds for all k hold at once: look at the rows first, and choose k afterwards.

        Parameters
        ----------
        k : int, optional
            A number of rows; by default that of the flagged ones.
        """
        if self.comparison is None:
            raise ValueError(
                "a saved model and the preset 'paper' have no bound on false discoveries; use "
                "detect with the preset 'recommended'"
            )
        if k is None:
            k = self.n_flagged
        check_count("k", k, least=0)
        return int(self.comparison.curve.of_first(np.array([k]))[0])

    def _false_at_ranks(self, ranks: NDArray[np.intp]) -> pd.arrays.IntegerArray:
        """Return the bounds down to some ranks; missing for rows without one."""
        import pandas as pd

        assert self.comparison is not None
        most = self.comparison.curve.of_first(ranks)
        return pd.arrays.IntegerArray(most, ranks == 0)

    @property
    def is_drift_scored(self) -> bool:
        """Whether the batch has drifted in columns that scores and flags rest on."""
        if self.verdict is None or self.verdict.decision != "drift":
            return False
        moved = {column.name for column in self.verdict.moved}
        return not moved or not moved.isdisjoint(self.encoder.groups_)

    @cached_property
    def suspicious_normal(self) -> pd.DataFrame | None:
        """Known-normal rows that clearly look like the anomalies found, most suspicious first.

        Most often there are none; see `QMS22Ensemble.suspicious_normal`. The index is that of the
        known-normal table: positions in a file count from 0. It is None for a saved model and for
        `QMS22`. Known-normal rows are scored on first use.
        """
        table, positions = self.normal_table, self.normal_positions
        if table is None or positions is None or not isinstance(self.detector, QMS22Ensemble):
            return None
        return table.take(positions[self.detector.suspicious_normal()])

    def normal_to_check(self, k: int | None = None) -> pd.DataFrame:
        """Return known-normal rows to look at, most suspicious first, as a table for marks.

        Write "anomaly" into the column "mark" of rows that are not normal, and pass the table to
        `detect` as `marks`: these rows leave the known-normal ones and become known anomalies. No
        row leaves for its score alone; see `QMS22Ensemble.suspicious_normal`.

        Parameters
        ----------
        k : int, optional
            How many rows; by default 5 % of the known-normal ones, but at most 100.

        Returns
        -------
        DataFrame
            Columns "rank", "row" (the position, or in its place the column `id`), "source"
            ("normal"), "score", "mark" and those of the known-normal table. Rows that left because
            of earlier marks come last. Raises ValueError for a saved model and for `QMS22`.
        """
        normal, positions = self.normal, self.normal_positions
        if normal is None or positions is None or not isinstance(self.detector, QMS22Ensemble):
            raise ValueError(
                "known-normal rows are ranked only by detect with the preset 'recommended'"
            )
        scores = self.detector.score_normals()
        return rows_to_check(normal, positions, scores, self.marks, self.id, k)

    def table(self, *, only_flagged: bool = False) -> pd.DataFrame:
        """Return the rows in order of rank: results, then the columns of the batch.

        Parameters
        ----------
        only_flagged : bool
            Whether to return the flagged rows alone.

        Returns
        -------
        DataFrame
            Columns "rank" (from 1), "row" (the position, or in its place the column `id`), "score",
            "flagged", "reasons", "p_value" and "false_at_most" (how many of the rows down to this
            one are normal at most; see `false_at_most`) where there are such, "mark" where marks
            were given, and those of the batch. A column of the batch with one of these names gets a
            "_" appended. Rows marked as anomalies or as normal come last, without a rank. Dropped
            rows are not in the table. The index is that of the batch.
        """
        if only_flagged:
            rows, ranks = self._ranked_flagged()
        else:
            rows = np.concatenate([self.ranking, self._marked])
            ranks = np.concatenate([np.arange(1, self.n_scored + 1), np.zeros_like(self._marked)])
        return self._with_results(self.source.take(rows), rows, ranks)

    def tables(self) -> Iterator[pd.DataFrame]:
        """Yield what `table` returns, in parts if the batch is not in memory.

        Yields
        ------
        DataFrame
            The whole table, or its rows in the order of the file, chunk by chunk. The latter takes
            about twenty bytes of memory per row, besides the scores.
        """
        if self.source.is_loaded:
            yield self.table()
            return
        ranking = self.ranking
        ranks = np.zeros(len(self.scores), dtype=np.uint32)
        ranks[ranking] = np.arange(1, len(ranking) + 1, dtype=np.uint32)
        del ranking
        marked = self._marked
        first = 0
        n_rows = rows_per_chunk(len(self.source.names))
        for chunk in self.source.chunks(n_rows=n_rows, exact=True):
            rows = np.arange(first, first + len(chunk))
            first += len(chunk)
            is_listed = (ranks[rows] > 0) | np.isin(rows, marked)
            rows = rows[is_listed]
            yield self._with_results(chunk[is_listed], rows, ranks[rows].astype(np.intp))

    def write(
        self, path: str | PathLike[str] | DatabasePlace, *, only_flagged: bool = False
    ) -> None:
        """Write what `table` returns to a file, or to a new table of a database.

        Parameters
        ----------
        path : path
            A .csv, .xlsx, .parquet, .json or .jsonl file, or a table of a database such as
            ``results.db#scores``. A file is written completely or not at all; an existing one is
            replaced. A batch that is read part by part keeps its order.
        only_flagged : bool
            Whether to write the flagged rows alone, in order of rank.
        """
        parts = [self.table(only_flagged=True)] if only_flagged else self.tables()
        place = path if isinstance(path, DatabasePlace) else find_database(path, new=True) or path
        write_tables(parts, place if isinstance(place, DatabasePlace) else Path(place))

    def save(self, path: str | PathLike[str]) -> None:
        """Save the encoder, the detector and the checks as a model file for `qms22.score`.

        The file contains data; see `qms22.models.save_model`.

        Parameters
        ----------
        path : path
            The file, usually ``….skops``. It is written completely or not at all.
        """
        facts = {"preset": preset_of(self.detector), "id": self.id}
        save_model(path, self.detector, encoder=self.encoder, checks=self.checks, **facts)

    def summary(self) -> pd.DataFrame:
        """Return the flagged rows without the columns of the batch, except `id`."""
        return self._summary(*self._ranked_flagged())

    def _summary(self, rows: NDArray[np.intp], ranks: NDArray[np.intp]) -> pd.DataFrame:
        import pandas as pd

        names = pd.DataFrame(index=rows)
        if self.id is not None:
            names = self.source.take(rows, [self.id])
        return self._with_results(names, rows, ranks)

    def facts(self) -> dict[str, str]:
        """Return how the result was made, in words."""
        parameters = self.detector.get_params()
        names = ("n_splits", "n_members", "n_components", "max_iter", "scaling", "n_restarts")
        facts = {} if self.normal_table is None else {"known-normal rows": str(self.n_normal)}
        facts["rows of the batch"] = str(self.n_scored)
        if 0 < self.n_drawn < self.n_scored:
            facts["of these learned from"] = str(self.n_drawn)
        if self.marks is not None:
            facts["marks"] = str(self.marks)
        if self.verdict is not None:
            facts["verdict"] = str(self.verdict)
        facts["detector"] = type(self.detector).__name__
        facts["settings"] = ", ".join(f"{n} {parameters[n]}" for n in names if n in parameters)
        if self.fdr is not None:
            facts["false discovery rate"] = f"{self.fdr:g}"
        return {**facts, "seed": str(parameters["random_state"]), "qms22": __version__}

    def report(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        truth: ArrayLike | None = None,
        facts: Mapping[str, str] | None = None,
    ) -> Path:
        """Write a page to explore the result: one HTML file that needs nothing else.

        The page shows the verdict, the ranked rows with their reasons and the cells to blame, the
        scores and the distributions of the columns. Its reader filters and sorts rows, chooses how
        many to flag, and marks rows; the marks become a file for `marks` of `detect`. It works
        offline. Of more than 100,000 rows it holds the most suspicious ones and all flagged ones.

        Parameters
        ----------
        path : str or Path
            An .html file. An existing one is replaced, and left as it was if anything fails.
        title : str, optional
            Heading of the page.
        truth : array-like of bool of shape (n_rows,), optional
            Which rows are outliers, to show how well they were found.
        facts : mapping of str to str, optional
            More about how the result was made.

        Returns
        -------
        Path
            The file.
        """
        if Path(path).suffix.lower() not in (".html", ".htm"):
            # The path of a table, given by mistake, must not lose the table.
            raise ValueError(f"a report is an .html file; got {str(path)!r}")
        # Imported here: it needs jinja2, which is optional.
        from qms22.detection.page_content import page_content
        from qms22.report import write_page

        title = title or f"Suspicious rows of {self.source.title}"
        content = page_content(self, title, truth, {**(facts or {}), **self.facts()})
        return write_page(Path(path), content)

    def _ranked_flagged(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the positions of the flagged rows in order of rank, and their ranks."""
        flagged = np.flatnonzero(self.flagged)
        flagged = flagged[np.argsort(-self.scores[flagged], kind="stable")]
        return flagged, np.arange(1, len(flagged) + 1)

    def _with_results(
        self, table: pd.DataFrame, rows: NDArray[np.intp], ranks: NDArray[np.intp]
    ) -> pd.DataFrame:
        """Return results and columns of some rows of the batch side by side."""
        import pandas as pd

        return pd.concat(self.beside(table, rows, ranks), axis=1)

    def beside(
        self, table: pd.DataFrame, rows: NDArray[np.intp], ranks: NDArray[np.intp]
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the results of some rows, and their columns with names that do not clash.

        Parameters
        ----------
        table : DataFrame
            The rows.
        rows, ranks : ndarray of int
            Their positions and ranks; rank 0 stands for none.
        """
        reasons = np.full(len(rows), "", dtype=object)
        for at in np.flatnonzero(np.isin(rows, list(self.reasons))):
            reasons[at] = "; ".join(map(str, self.reasons[int(rows[at])]))
        results: dict[str, Any] = {
            "rank": shown_ranks(ranks),
            "row": rows,
            "score": self.scores[rows],
            "flagged": self.flagged[rows],
            "reasons": reasons,
        }
        if self.comparison is not None:
            results["p_value"] = self.comparison.p_values[rows]
            results["false_at_most"] = self._false_at_ranks(ranks)
        if self.marks is not None:
            results["mark"] = self.marks.words(rows)
        return without_clashes(results, table, self.source.names, self.id)

    def __repr__(self) -> str:
        rate = "" if self.fdr is None else f" at fdr={self.fdr:g}"
        false = ""
        if self.n_flagged and self.comparison is not None:
            false = f", at most {self.false_at_most():,} of them normal"
        verdict = "" if self.verdict is None else f"; {self.verdict.short}"
        flagged = f"{self.n_flagged:,} of {self.n_scored:,} rows flagged"
        return f"Detection: {flagged}{rate}{false}{verdict}"

    def _repr_html_(self) -> str:
        """Return the first flagged rows for a notebook, or the first rows if none is flagged."""
        rows, ranks = (each[:_ROWS_IN_NOTEBOOK] for each in self._ranked_flagged())
        title = repr(self)
        if not len(rows):
            rows = self.ranking[:_ROWS_IN_NOTEBOOK]
            ranks = np.arange(1, len(rows) + 1)
            title += ". These rows are the most suspicious, but not certain to be anomalies."
        return notebook_text(title, self._summary(rows, ranks).drop(columns="flagged"))
