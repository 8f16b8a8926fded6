"""Troubles of dates and of columns that only tell the period."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
from case import Case
from orders import Text, moments


def days(rng: np.random.Generator, n_rows: int, is_batch: bool) -> list[Any]:
    """Return days without a time."""
    return [moment.replace(hour=0, minute=0) for moment in moments(rng, n_rows, is_batch)]


LATE = datetime(2037, 5, 9, 12, 30)
LATE_DAY = datetime(2037, 5, 9)
_MONTHS = ["Januar", "Februar", "März", "April"]  # none of the days is later
DATES = [
    Case(
        "iso-times",
        "Moments with T and Z.",
        "shipped",
        LATE,
        writers={"shipped": lambda value: f"{value:%Y-%m-%dT%H:%M:%SZ}"},
    ),
    Case(
        "us-dates",
        "Months before days.",
        "shipped",
        LATE_DAY,
        {"shipped": days},
        {"shipped": lambda value: f"{value:%m/%d/%Y}"},
    ),
    Case(
        "german-dates",
        "Days before months, with points.",
        "shipped",
        LATE_DAY,
        {"shipped": days},
        {"shipped": lambda value: f"{value:%d.%m.%Y}"},
    ),
    Case(
        "short-years",
        "Years of two digits.",
        "shipped",
        LATE_DAY,
        {"shipped": days},
        {"shipped": lambda value: f"{value:%d.%m.%y}"},
    ),
    Case(
        "am-pm",
        "Hours of the morning and of the afternoon.",
        "shipped",
        LATE,
        writers={"shipped": lambda value: f"{value:%m/%d/%Y %I:%M %p}"},
    ),
    Case(
        "month-names",
        "Months as words.",
        "shipped",
        LATE_DAY,
        {"shipped": days},
        {"shipped": lambda value: f"{value:%b} {value.day}, {value.year}"},
    ),
    Case(
        "german-months",
        "Months as German words.",
        "shipped",
        datetime(2037, 3, 9),
        {"shipped": days},
        {"shipped": lambda value: f"{value.day}. {_MONTHS[value.month - 1]} {value.year}"},
    ),
    Case(
        "mixed-dates",
        "Dates in two formats.",
        "shipped",
        LATE_DAY,
        {"shipped": days},
        {"shipped": lambda value: f"{value:%d.%m.%Y}" if value.day % 2 else f"{value:%Y-%m-%d}"},
    ),
    Case(
        "compact-dates",
        "Dates without any separator.",
        "shipped",
        LATE_DAY,
        {"shipped": days},
        {"shipped": lambda value: f"{value:%Y%m%d}"},
    ),
    Case(
        "weeks",
        "Weeks in place of days.",
        "shipped",
        LATE_DAY,
        {"shipped": days},
        {"shipped": lambda value: f"{value:%G-W%V}"},
        unread=("shipped",),
    ),
    Case(
        "times",
        "Times of the day.",
        "time",
        Text("03:12"),
        {"time": moments},
        {"time": lambda value: f"{value:%H:%M}"},
        kinds={"time": "date"},
        unread=("time",),
    ),
    Case(
        "at-night",
        "All dates are later than the normal ones, and one is at night.",
        "shipped",
        datetime(2024, 6, 5, 3, 10),
        makers={
            "shipped": lambda rng, n_rows, is_batch: [
                moment + timedelta(days=120 * is_batch) for moment in moments(rng, n_rows, is_batch)
            ]
        },
    ),
    Case(
        "months",
        "A column that only says the month.",
        makers={
            "month": lambda rng, n_rows, is_batch: [
                "2024-04" if is_batch else "2024-0" + str(1 + at % 3) for at in range(n_rows)
            ]
        },
        kinds={"month": "date"},
        unread=("month",),
        notes=("left out: month",),
    ),
    Case(
        "counter",
        "A number that counts the rows.",
        makers={
            "line": lambda rng, n_rows, is_batch: [501 + 60 * is_batch + at for at in range(n_rows)]
        },
        kinds={"line": "identifier"},
        notes=("left out: line",),
    ),
]
