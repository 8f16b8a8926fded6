"""Checks of the parameters of an encoder."""

from __future__ import annotations

from collections.abc import Sequence

from qms22._runtime.validation import is_count, is_number


def check_ignore(ignore: Sequence[str]) -> None:
    """Raise ValueError if columns to ignore are given as one text."""
    if isinstance(ignore, str):
        raise ValueError(
            f"ignore must be a sequence of column names; got the text {ignore!r}, for which write "
            f"({ignore!r},)"
        )


def check_min_frequency(least: float) -> None:
    """Raise ValueError if the least number of rows of a level makes no sense."""
    if not (is_number(least) and least >= 0 and (least < 1 or is_count(least))):
        raise ValueError(
            f"min_frequency must be a share in [0, 1) or a whole number of rows; got {least!r}"
        )
