"""Dates and times in texts, in the usual formats of several countries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Precision = Literal["month", "week", "day", "minute", "second"]


@dataclass(frozen=True)
class DateFormat:
    """How the dates of a column are written; plain values only, so that it can be saved.

    Parameters
    ----------
    precision : {"month", "week", "day", "minute", "second"}
        The finest part that differs: "day" also where all times are midnight.
    is_time_of_day : bool
        Whether the column has times without dates; values are then microseconds since midnight.
    month_first : str
        The separators, of "/", "-" and ".", between which the month is before the day.
    is_doubtful : bool
        Whether the other order of day and month fits too.
    """

    precision: Precision = "day"
    is_time_of_day: bool = False
    month_first: str = ""
    is_doubtful: bool = False

    @property
    def note(self) -> str:
        """What the user should know of the order of day and month; "" if there is no doubt."""
        raise NotImplementedError

    def read(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return microseconds since 1970, in local time; NaN for a text that does not fit."""
        raise NotImplementedError

    def show(self, value: float) -> str:
        """Return a date as the column writes dates."""
        raise NotImplementedError


def find_date_format(
    texts: Sequence[str], counts: Sequence[float] | None = None
) -> DateFormat | None:
    """Return how the dates of a column are written, or None if it is no column of dates.

    Parameters
    ----------
    texts : sequence of str
        The different texts of the column in the known-normal rows.
    counts : sequence of float, optional
        In how many rows each of them occurs.
    """
    raise NotImplementedError
