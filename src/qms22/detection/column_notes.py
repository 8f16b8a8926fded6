"""What the user should know of how the columns of two tables were used."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from qms22.detection.encoding import EncodedTables
from qms22.tables.cells import Cells
from qms22.tables.words import list_some


def column_notes(
    encoded: EncodedTables, n_normal: int, ignored: Collection[str]
) -> tuple[str, ...]:
    """Return sentences about missing cells, dropped rows and columns that are left out.

    Parameters
    ----------
    encoded : EncodedTables
    n_normal : int
        Number of known-normal rows before any was dropped.
    ignored : collection of str
        Columns that the user has asked to leave out.
    """
    notes = [_missing(encoded), _left_out(encoded, ignored)]
    if n_dropped := n_normal - len(encoded.normal):
        notes.append(f"{n_dropped} of {n_normal} normal rows with missing values were dropped")
    return tuple(filter(None, notes))


def _missing(encoded: EncodedTables) -> str:
    """Return the share of missing cells of each column that is used and has any."""
    shares = []
    for name in encoded.encoder.groups_:
        known, batch = (_share(of, name) for of in (encoded.normal_cells, encoded.batch_cells))
        text = f"{name} {_percent(known)} (batch {_percent(batch)})"
        if known or batch:
            shares.append((max(known, batch), text))
    # The sort is stable: of equal shares, in the order of the table.
    texts = [text for _, text in sorted(shares, key=lambda pair: -pair[0])]
    return f"missing: {list_some(texts)}" if texts else ""


def _share(cells: Mapping[str, Cells], name: str) -> float:
    return float(np.mean(cells[name].missing)) if name in cells else 0.0


def _percent(share: float) -> str:
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    return f"{100 * share:.{0 if 0.1 <= share <= 0.9 else 1}f} %".replace("0.0 %", "<0.1 %")


def _left_out(encoded: EncodedTables, ignored: Collection[str]) -> str:
    """Return the columns that vary and are not used, those that look informative first."""
    encoder = encoded.encoder
    asked = {*ignored, *(encoder.kinds or {})}
    columns = [
        column
        for column in encoder.columns_
        if not column.outputs
        and (column.kind != "constant" or column.name in encoder.ignore)
        and column.name not in asked
    ]
    columns.sort(key=lambda column: column.kind == "identifier")
    by_reason: dict[str, list[str]] = {}
    for column in columns:
        reason = f"{column.kind}: {column.note.removesuffix('; ignored')}"
        by_reason.setdefault(reason, []).append(column.name)
    texts = [f"{list_some(names)} ({reason})" for reason, names in by_reason.items()]
    return f"left out: {list_some(texts)}" if texts else ""
