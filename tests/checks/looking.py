"""Tables in which checks look for odd rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from frames import encode_frames
from numpy.typing import NDArray

from qms22.checks import TableChecks, learn_checks
from qms22.checks.check import Check, Said
from qms22.detection.reasons.explaining import shower
from qms22.tables import TabularEncoder
from qms22.tables.columns.cells import Columns


@dataclass(frozen=True, eq=False)
class Looked:
    """What checks find in a batch."""

    encoder: TabularEncoder
    checks: TableChecks
    rows: Columns
    surprises: NDArray[np.float64]

    @property
    def ranking(self) -> list[int]:
        """The rows, the oddest first."""
        order: list[int] = np.argsort(-self.surprises.max(axis=1), kind="stable").tolist()
        return order

    def by(self, kind: type[Check], *columns: str, **fields: Any) -> NDArray[np.float64]:
        """Return how odd rows are by the checks of a kind, of some columns."""
        found = self.surprises[:, self._numbers(kind, columns, fields)]
        oddness: NDArray[np.float64] = found.max(axis=1, initial=0.0)
        return oddness

    def says(self, row: int, kind: type[Check], *columns: str, **fields: Any) -> str:
        """Return what a kind of check says about a row."""
        return self.said(row, kind, *columns, **fields).text

    def said(self, row: int, kind: type[Check], *columns: str, **fields: Any) -> Said:
        """Return what a kind of check says about a row, and what is usual."""
        numbers = self._numbers(kind, columns, fields)
        check = numbers[int(np.argmax(self.surprises[row, numbers]))]
        return self._described(row, check)

    def reason(self, row: int) -> str:
        """Return what is the oddest about a row."""
        check = int(np.argmax(self.surprises[row]))
        return self._described(row, check).text

    def _described(self, row: int, check: int) -> Said:
        show = shower(self.encoder)
        return self.checks.describe(self.rows, np.array([row]), check, show)[0]

    def _numbers(
        self, kind: type[Check], columns: tuple[str, ...], fields: dict[str, Any]
    ) -> list[int]:
        return [
            at
            for at, check in enumerate(self.checks.checks)
            if isinstance(check, kind)
            and check.columns[: len(columns)] == columns
            and all(getattr(check, name) == value for name, value in fields.items())
        ]


def look(
    normal: pd.DataFrame, batch: pd.DataFrame, by: str | None = None, **options: Any
) -> Looked:
    """Learn the checks of two tables, and look at the batch; `by` says what belongs together."""
    encoded = encode_frames(normal, batch, **options)
    tables = encoded.normal_cells, encoded.batch_cells
    checks = learn_checks(encoded.encoder, *tables, 0, by=by).checks
    rows = checks.read(encoded.batch_cells)
    return Looked(encoded.encoder, checks, rows, checks.surprises(rows))
