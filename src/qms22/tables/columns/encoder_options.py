"""Checks of the parameters of an encoder, and of what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from qms22._runtime.validation import check_choice, is_count, is_number


def check_parameters(ignore: Sequence[str], missing: str, min_frequency: float) -> None:
    """Raise ValueError if a parameter makes no sense, whatever the table is."""
    check_ignore(ignore)
    check_way_of_missing(missing)
    if not (
        is_number(min_frequency)
        and min_frequency >= 0
        and (min_frequency < 1 or is_count(min_frequency))
    ):
        raise ValueError(
            "min_frequency must be a share in [0, 1) or a whole number of rows; got "
            f"{min_frequency!r}"
        )


def check_ignore(ignore: Sequence[str | int]) -> None:
    """Raise ValueError if columns to ignore are not a sequence."""
    if isinstance(ignore, str) or not isinstance(ignore, Iterable):
        raise ValueError(f"ignore must be a sequence of columns; write [{ignore!r}]")


def check_way_of_missing(missing: str) -> None:
    """Raise ValueError if it is not known what to do with missing values."""
    check_choice("missing", missing, ("impute", "drop", "error"))


def check_array_like(table: Any) -> None:
    """Raise ValueError for a list of dicts, all of which scikit-learn's message would print."""
    if isinstance(table, list | tuple) and any(isinstance(row, Mapping) for row in table[:1]):
        raise ValueError(
            "a table must be a data frame or an array; got a list of dicts; make one with "
            "pandas.DataFrame"
        )
