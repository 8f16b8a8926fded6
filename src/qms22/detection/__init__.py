"""Detection on two tables: encode, fit, rank, flag, explain.

- `run`: `detect`. `search_options`: its parameters. `inputs`: opens the tables and draws rows.
  `scoring`: `score`.
- `encoding`: the matrix. `aligning`: columns that belong together, values written in another
  way, columns that only say when. `column_notes`: what to know about columns.
- `scorer`, `streaming`: scores of detector and checks, files larger than memory.
- `reasons`: why a row is suspicious, and which cell is to blame. `findings`, `history`,
  `marks`: rooms of their own.
- `compared_columns`: columns for the verdict. `past_batches`: a search with a history, and what
  the history knows of earlier batches.
- `result`: `Detection`, with `rows`. `results`: what it is written as.
- `noticing`: the batch as a whole. `policy`: rules for jobs. `verifying`: repeats a search.
"""

# Names are imported on first use: pandas and scikit-learn take a second to import.
from __future__ import annotations

from typing import TYPE_CHECKING

from qms22._runtime.packages import lazy_names

if TYPE_CHECKING:
    from qms22.checks.check import Usual as Usual
    from qms22.decisions.comparison import Comparison as Comparison
    from qms22.detection.findings.finding import Finding as Finding
    from qms22.detection.history.history_entry import ColumnException as ColumnException
    from qms22.detection.history.history_entry import HistoryEntry as HistoryEntry
    from qms22.detection.history.history_file import BatchHistory as BatchHistory
    from qms22.detection.marks.table_marks import TableMarks as TableMarks
    from qms22.detection.noticing import Noticed as Noticed
    from qms22.detection.policy import Rule as Rule
    from qms22.detection.reasons.row_reasons import RowReason as RowReason
    from qms22.detection.result import Detection as Detection
    from qms22.detection.run import detect as detect
    from qms22.detection.scoring import score as score

_HOMES = {
    "BatchHistory": "qms22.detection.history.history_file",
    "ColumnException": "qms22.detection.history.history_entry",
    "Comparison": "qms22.decisions.comparison",
    "Detection": "qms22.detection.result",
    "Finding": "qms22.detection.findings.finding",
    "HistoryEntry": "qms22.detection.history.history_entry",
    "Noticed": "qms22.detection.noticing",
    "RowReason": "qms22.detection.reasons.row_reasons",
    "Rule": "qms22.detection.policy",
    "TableMarks": "qms22.detection.marks.table_marks",
    "Usual": "qms22.checks.check",
    "detect": "qms22.detection.run",
    "score": "qms22.detection.scoring",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
