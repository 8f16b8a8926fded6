"""Values of tables in types of Python and of JSON."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def column_values(column: pd.Series) -> list[Any]:
    """Return the values of a column as Python has them."""
    import pandas as pd

    if isinstance(column.dtype, pd.ArrowDtype):
        values: list[Any] = column.array.__arrow_array__().to_pylist()
    else:
        values = column.tolist()
    return values


def plain(value: Any) -> Any:
    """Return a value in JSON's types; None for missing and infinite ones, text for others."""
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers
        return plain(value.tolist())
    return None if type(value).__name__ in ("NAType", "NaTType") else str(value)
