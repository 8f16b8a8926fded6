"""Data frames for functions that take columns."""

from __future__ import annotations

from typing import Any

import pandas as pd

from qms22.detection.encoding import EncodedTables, encode_tables
from qms22.tables import TabularEncoder, open_table


def encode_frames(normal: pd.DataFrame, batch: pd.DataFrame, **options: Any) -> EncodedTables:
    """Encode two data frames; the options are those of the encoder."""
    columns = open_table(normal).columns(), open_table(batch).columns()
    return encode_tables(*columns, TabularEncoder(**options))
