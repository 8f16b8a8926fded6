"""The result of a detection, and the tables and the page made from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from qms22 import __version__
from qms22._runtime.validation import check_count
from qms22.checks import OddCells, TableChecks
from qms22.decisions.comparison import Comparison
from qms22.decisions.ruler import why_none
from qms22.decisions.verdict import Verdict
from qms22.detection.findings.finding import Finding
from qms22.detection.history.history_entry import ColumnException, HistoryEntry
from qms22.detection.marks.table_marks import TableMarks
from qms22.detection.noticing import Noticed, notice
from qms22.detection.policy import Rule, check_rules
from qms22.detection.reasons.row_reasons import RowReason
from qms22.detection.results.result_data import provenance_of, result_data
from qms22.detection.results.result_files import Target, write_tables
from qms22.detection.results.result_table import (
    beside,
    in_file_order,
    notebook_text,
    parted_lines,
    parted_rows,
    rows_to_check,
    summary_of,
)
from qms22.detection.results.result_workbook import Remarks
from qms22.detection.search_options import preset_of
from qms22.estimators.batch_detector import BatchDetector
from qms22.estimators.ensemble import QMS22Ensemble
from qms22.models import save_model
from qms22.tables import Table, TabularEncoder
from qms22.tables.columns.cells import Columns


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
        By position, the strongest reason first. Flagged rows are explained, 1,000 at most.
    normal_table : Table or None
        The known-normal table; None where a saved model was applied.
    normal_positions : ndarray of int or None
        Positions of the rows of it that were learned from.
    comparison : Comparison or None
        Where rows stand among the known-normal ones; None for a saved model and for "paper".
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
        for a saved model. For the preset "paper" only columns are compared.
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
        The columns of both tables as the encoder understands them, if all rows were learned from.
    settings : dict from str to object
        The options of the search, as they were given.
    inputs : tuple of (str, Table or Path)
        What was given, each with its role: "normal", "batch", "marks", or "model" with its file.
    exceptions : tuple of ColumnException
        Columns that may move today, by the history; they are not learned from.
    profile : dict or None
        With a history: what later batches are compared with.
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
    settings: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[tuple[str, Table | Path], ...] = ()
    exceptions: tuple[ColumnException, ...] = ()
    profile: dict[str, Any] | None = None

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
        return len(self._decided)

    @property
    def _decided(self) -> NDArray[np.intp]:
        """Positions of the rows that are marked as anomalies or as normal."""
        return np.empty(0, dtype=np.intp) if self.marks is None else self.marks.decided

    @property
    def ranking(self) -> NDArray[np.intp]:
        """Positions of the scored rows, most suspicious first; at ties the lower position."""
        return np.argsort(-self.scores, kind="stable")[: self.n_scored]

    @cached_property
    def _ranks(self) -> NDArray[np.intp]:
        """The rank of every row of the batch, 0 for those without a score."""
        ranks = np.zeros(len(self.scores), dtype=np.intp)
        ranks[self.ranking] = np.arange(1, self.n_scored + 1)
        return ranks

    @property
    def top(self) -> NDArray[np.intp]:
        """Positions of the flagged rows, most suspicious first."""
        rows = np.flatnonzero(self.flagged)
        return rows[np.argsort(-self.scores[rows], kind="stable")]

    @property
    def n_flagged(self) -> int:
        """Number of flagged rows."""
        return int(np.count_nonzero(self.flagged))

    @property
    def answer(self) -> str:
        """How many rows are flagged, and how many of these are normal at most: a sentence."""
        n_flagged, n_rows = self.n_flagged, self.n_scored
        rate = "" if self.fdr is None else f" (false discovery rate {self.fdr:g})"
        are = "is" if n_flagged <= 1 else "are"
        rows = "row" if n_rows == 1 else "rows"
        count = f"{n_flagged:,}" if n_flagged else "None"
        words = f"{count} of {n_rows:,} {rows} {are} flagged{rate}"
        if not n_flagged or self.comparison is None:
            return f"{words}."
        n_false = self.false_at_most()
        if n_false == n_flagged:
            return f"{words}; {'it' if n_flagged == 1 else 'all of them'} may be normal."
        false = f"at most {n_false:,} of them {'is' if n_false == 1 else 'are'}"
        if not n_false:
            false = "it is not" if n_flagged == 1 else "none of them is"
        return f"{words}; {false} normal (90 % sure)."

    @property
    def remark(self) -> str:
        """What to know about the flagged rows, or why there are none; may be empty."""
        decision = None if self.verdict is None else self.verdict.decision
        if not self.n_flagged:
            if self.fdr is None or self.comparison is None:
                return ""
            why = why_none(self.n_scored, self.comparison.ruler.n_known, self.fdr) or ""
            # That no row is flagged, `answer` says.
            words = why.removeprefix("no row is flagged: ")
            return f"{words[:1].upper()}{words[1:]}." if words else ""
        if decision == "drift" and not self.is_drift_scored:
            return "The columns that moved were left out, so the flags do not depend on them."
        if decision == "drift":
            return (
                "The rows may be flagged only because the batch has drifted; follow the advice "
                "before you look at them."
            )
        if decision == "fine" and self.fdr is not None:
            return (
                "The evidence of the flagged rows is too weak for an alarm: they are worth a look, "
                "but may all be normal."
            )
        return ""

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
        k = self.n_flagged if k is None else k
        check_count("k", k, least=0)
        return int(self.comparison.curve.of_first(np.array([k]))[0])

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

    @cached_property
    def noticed(self) -> tuple[Noticed, ...]:
        """What is unusual about the batch as a whole: its size, columns, keys, copies and dates."""
        return notice(self)

    def check(
        self,
        *,
        fail_on: Sequence[str] = (),
        max_flagged: int | None = None,
        max_share: float | None = None,
    ) -> tuple[Rule, ...]:
        """Compare the result with each rule of a policy, as `--fail-on` of the command does.

        Parameters
        ----------
        fail_on : sequence of {"anomalies", "drift", "flagged", "volume", "schema"}
            What the batch must not have: a verdict of anomalies or drift, a flagged row, an unusual
            number of rows, other columns. A saved model knows only "flagged" and "schema".
        max_flagged : int, optional
            How many rows may be flagged.
        max_share : float, optional
            Which share of the searched rows may be flagged.
        """
        return tuple(check_rules(self, fail_on, max_flagged, max_share))

    def to_dict(self, rules: Sequence[Rule] = ()) -> dict[str, Any]:
        """Return the result as data of plain types, as `--json` of the command writes it.

        It has the verdict, moved columns, what was noticed, findings, flagged rows with their
        reasons, notes, counts, settings and provenance; ``docs/schema/result-1.json`` describes it.
        The digests of files are made now.

        Parameters
        ----------
        rules : sequence of Rule
            What `check` has returned, to have it in the data.
        """
        return {**result_data(self, rules), "provenance": provenance_of(self)}

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
        rows = self.top if only_flagged else np.append(self.ranking, self._decided)
        return pd.concat(beside(self, self.source.take(rows), rows), axis=1)

    def tables(self) -> Iterator[pd.DataFrame]:
        """Iterate over what `table` returns, in parts if the batch is not in memory.

        The parts have the rows in the order of the file. They take about twenty bytes of memory
        per row, besides the scores.
        """
        return iter([self.table()]) if self.source.is_loaded else in_file_order(self)

    def write(self, path: Target, *, only_flagged: bool = False) -> None:
        """Write what `table` returns to a file, or to a new table of a database.

        Parameters
        ----------
        path : path
            A .csv, .xlsx, .parquet, .json or .jsonl file, or a table of a database such as
            ``results.db#scores``. A file is written completely or not at all; an existing one is
            replaced. A batch that is read part by part keeps its order. In a workbook the cells to
            blame are coloured, with the reasons as comments, and a second sheet has the verdict.
        only_flagged : bool
            Whether to write the flagged rows alone, in order of rank.
        """
        if str(path).lower().endswith(".xlsx"):
            table = self.table(only_flagged=only_flagged)
            write_tables([table], path, Remarks.of(self, result_data(self), table))
        else:
            write_tables([self.table(only_flagged=True)] if only_flagged else self.tables(), path)

    def write_parted(self, good: Target | None = None, bad: Target | None = None) -> None:
        """Part the batch: write the flagged rows with their reasons to `bad`, others to `good`.

        The files are as in `write`. Rows keep their columns and their order. Known anomalies are
        bad rows; rows without a score, which were dropped or marked as normal, are good ones.
        """
        written = self.source.content.written
        for path, is_bad in ((good, False), (bad, True)):
            if path is not None:
                # From one text file to another one, rows stay as they are written.
                lines = None if written is None else parted_lines(self, written(), is_bad=is_bad)
                write_tables(parted_rows(self, is_bad=is_bad), path, lines=lines)

    def save(self, path: str | PathLike[str]) -> None:
        """Save the encoder, the detector and the checks as a model file for `qms22.score`.

        The file, usually ``….skops``, contains data; see `qms22.models.save_model`. It is written
        completely or not at all.
        """
        facts = {"preset": preset_of(self.detector), "id": self.id}
        save_model(path, self.detector, encoder=self.encoder, checks=self.checks, **facts)

    def summary(self) -> pd.DataFrame:
        """Return the flagged rows without the columns of the batch, except `id`."""
        return summary_of(self, self.top)

    def facts(self) -> dict[str, str]:
        """Return how the result was made, in words."""
        parameters = self.detector.get_params()
        names = ("n_splits", "n_members", "n_components", "max_iter", "scaling", "n_restarts")
        facts = {} if self.normal_table is None else {"known-normal rows": f"{self.n_normal:,}"}
        facts["rows of the batch"] = f"{self.n_scored:,}"
        if 0 < self.n_drawn < self.n_scored:
            facts["of these learned from"] = f"{self.n_drawn:,}"
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
        """
        # Imported here: jinja2 takes time, and not every run writes a page.
        from qms22.detection.results.page_content import page_content
        from qms22.report.page import write_page

        if Path(path).suffix.lower() not in (".html", ".htm"):
            # The path of a table, given by mistake, must not lose the table.
            raise ValueError(f"a report is an .html file; got {str(path)!r}")
        title = title or f"Suspicious rows of {self.source.title}"
        content = page_content(self, title, truth, {**(facts or {}), **self.facts()})
        return write_page(Path(path), content)

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
        return notebook_text(self)
