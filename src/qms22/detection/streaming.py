"""Work on tables that may be larger than memory: drawing rows, scoring chunk by chunk."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from qms22._runtime.memory import MemoryBudget, is_limited, memory_allowed, size_text
from qms22._runtime.stages import progress_bar
from qms22.checks import OddCells
from qms22.detection.scorer import ScoredRows, TableScorer
from qms22.tables import Table
from qms22.tables.columns.cells import Columns, count_rows
from qms22.tables.sources.compressed import SHARE_OF_MEMORY, bytes_at_once

# Rows of each file to learn from. More of them hardly change the result, but take time; fewer than
# the least would teach too little, however small the memory.
DEFAULT_DRAW = 100_000
LEAST_DRAW = 1000

# Cells of a chunk: 4 MiB as numbers.
_CELLS_PER_CHUNK = 1 << 19
# Under a small limit they are fewer: a cell takes so much, and most of it for a moment.
_BYTES_PER_CELL = 16
_MOST_ROWS_PER_CHUNK = 1 << 16

# A drawn row is held so many times at once: as Arrow has it, encoded, and as Python's texts.
_COPIES = 4
# What a search takes in any case, for each row that it scores, and for each two columns, which
# checks compare (benchmarks/memory_limit.py).
_LEAST_BYTES = 100_000_000
_BYTES_PER_ROW = 100
_BYTES_PER_PAIR = 600
# Work on drawn rows should take no more than half of the memory.
_SHARE_FOR_DRAW = SHARE_OF_MEMORY / 2


def is_large(*sources: Table) -> bool:
    """Return whether work on these tables, read whole, might not fit into memory.

    Data frames do not count: they are in memory already.
    """
    n_bytes = sum(source.n_bytes for source in sources if not source.is_loaded)
    allowed = memory_allowed()
    return allowed is not None and n_bytes > SHARE_OF_MEMORY * allowed


def rows_to_draw(asked: int | None, *sources: Table) -> int:
    """Return how many rows to learn from of tables that are too large for memory.

    These are at most as many as are asked for. Raise ValueError if the least would fill the memory.
    The rows of the last table are scored.
    """
    most, allowed = asked or DEFAULT_DRAW, memory_allowed()
    if allowed is None:
        return most
    widest = max(sources, key=_width)
    least, width = min(LEAST_DRAW, widest.n_rows), round(_width(widest))
    MemoryBudget(widest.name).check(
        _COPIES * len(sources) * least * width,
        f"it learns from {least:,} rows, of {size_text(width)} each",
    )
    if is_limited():
        scored, n_columns = sources[-1], len(sources[-1].names)
        pairs = _BYTES_PER_PAIR * n_columns**2
        least = _LEAST_BYTES + _BYTES_PER_ROW * scored.n_rows + pairs
        digit = 10**8 if least >= 10**9 else 10**5  # the last one of the sentence
        MemoryBudget(scored.name).check(
            -(-least // digit) * digit,
            f"it has {scored.n_rows:,} rows to score and {n_columns:,} columns",
        )
    n_rows = int(_SHARE_FOR_DRAW * allowed / sum(map(_width, sources)))
    return min(max(n_rows, LEAST_DRAW), most)


def _width(source: Table) -> float:
    """Return the mean bytes of a row."""
    return source.n_bytes / max(source.n_rows, 1)


def rows_per_chunk(n_columns: int) -> int:
    """Return how many rows of a table to hold in memory at a time."""
    n_cells = min(_CELLS_PER_CHUNK, bytes_at_once() // _BYTES_PER_CELL)
    return int(np.clip(n_cells // max(n_columns, 1), 1, _MOST_ROWS_PER_CHUNK))


def score_rows(
    source: Table, scorer: TableScorer, verbose: int
) -> tuple[NDArray[np.float64], OddCells]:
    """Score every row of a table, chunk by chunk; NaN where a row is dropped."""
    scores, odd = np.full(source.n_rows, np.nan), OddCells.empty(source.n_rows)
    checks, name, is_part = scorer.checks, source.name, source.is_distributed
    # Both the matrix of a chunk and what each check says about it are in memory.
    n_checks = len(checks.checks) + len(checks.fitting.numbers)
    n_rows = rows_per_chunk(max(len(scorer.encoder.typical_row_), n_checks))
    is_long = source.n_rows > n_rows

    def score(first: int, chunk: Columns) -> tuple[int, ScoredRows]:
        # Workers of a cluster get what is used here, which must not be the table.
        end = first + count_rows(chunk)
        try:
            scored = scorer.score(chunk, is_part=is_part)
        except ValueError as error:
            part = f", rows {first:,} to {end - 1:,}" if is_long else ""
            raise ValueError(f"{name}{part}: {error}") from error
        return end, scored._replace(positions=first + scored.positions)

    began = time.perf_counter()
    with progress_bar("scoring", source.n_rows, enabled=verbose > 0 and is_long) as show:
        columns = [name for name in checks.roles.read if name in source.names]
        for end, (positions, found, of_chunk) in source.map(score, columns, n_rows):
            scores[positions] = found
            odd.put(positions, of_chunk)
            show(end, f"{end / (time.perf_counter() - began):,.0f} rows/s")
    if np.isnan(scores).all():
        raise ValueError("every row to search has missing values; impute them instead")
    return scores, odd
