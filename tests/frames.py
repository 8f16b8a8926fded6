"""Data frames for functions that take columns."""

from __future__ import annotations

from typing import Any

import pandas as pd

from qms22.detection.encoding import EncodedTables, encode_tables
from qms22.tables import open_table


def encode_frames(normal: pd.DataFrame, batch: pd.DataFrame, **options: Any) -> EncodedTables:
    """Encode two data frames."""
    return encode_tables(open_table(normal).columns(), open_table(batch).columns(), **options)
