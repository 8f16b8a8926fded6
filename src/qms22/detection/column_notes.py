"""What the user should know of how the columns of two tables were used."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from qms22.detection.encoding import EncodedTables
from qms22.tables.texts.words import list_some

# With fewer known-normal rows, no p-value can be below 3 %, and the user is told so.
_FEW_NORMAL = 30


def column_notes(
    encoded: EncodedTables, n_normal: int, ignored: Collection[str]
) -> tuple[str, ...]:
    """Return sentences about few or dropped known-normal rows, and what columns lack.

    Of `n_normal` known-normal rows, some may have been dropped; the user has asked to leave out
    the columns `ignored`.
    """
    notes = [_missing(encoded), _left_out(encoded, ignored)]
    n_left = len(encoded.normal_positions)
    if n_dropped := n_normal - n_left:
        be = "was" if n_dropped == 1 else "were"
        notes.append(f"{n_dropped:,} of {n_normal:,} normal rows with missing values {be} dropped")
    if n_left < _FEW_NORMAL:
        notes.append(
            f"{n_left} known-normal rows are few: by chance about 1 in {n_left + 1} normal rows is "
            "odder than all of them, so take the ranking as a hint, or give more of them"
        )
    return tuple(filter(None, notes))


def note_dropped(scores: NDArray[np.float64], n_marked: int = 0) -> tuple[str, ...]:
    """Return a note on the rows that have no score because they were dropped, if any was."""
    n_dropped = int(np.count_nonzero(np.isnan(scores))) - n_marked
    have, were = ("has", "was") if n_dropped == 1 else ("have", "were")
    rows = f"{n_dropped:,} of {len(scores):,} rows to search"
    return (f"{rows} {have} missing values and {were} dropped",) if n_dropped else ()


def _missing(encoded: EncodedTables) -> str:
    tables = encoded.normal_cells, encoded.batch_cells
    shares = {
        name: [float(np.mean(cells[name].missing)) if name in cells else 0.0 for cells in tables]
        for name in encoded.encoder.groups_
    }
    # The sort is stable: of equal shares, in the order of the table.
    names = sorted(
        filter(lambda name: any(shares[name]), shares), key=lambda name: -max(shares[name])
    )
    texts = ["{} {} (batch {})".format(name, *map(_percent, shares[name])) for name in names]
    return f"missing: {list_some(texts)}" if texts else ""


def _percent(share: float) -> str:
    text = f"{100 * share:.{0 if share in (0, 1) or 0.1 <= share <= 0.9 else 1}f} %"
    return "<0.1 %" if text == "0.0 %" else text


def _left_out(encoded: EncodedTables, ignored: Collection[str]) -> str:
    """Return the columns that vary and are not used, those that look informative first."""
    encoder = encoded.encoder
    asked = {*ignored, *(encoder.kinds or {})}
    by_reason: dict[str, list[str]] = {}
    for column in sorted(encoder.columns_, key=lambda column: column.kind == "identifier"):
        is_constant = column.kind == "constant" and column.name not in encoder.ignored_
        if not (column.outputs or is_constant or column.name in asked):
            reason = f"{column.kind}: {column.note.removesuffix('; ignored')}"
            by_reason.setdefault(reason, []).append(column.name)
    texts = [f"{list_some(names)} ({reason})" for reason, names in by_reason.items()]
    return f"left out: {list_some(texts)}" if texts else ""
