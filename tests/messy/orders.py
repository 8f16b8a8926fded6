"""Tables of orders with one obvious anomaly, and ways to write them down."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

N_NORMAL, N_BATCH = 80, 40
# The row of the batch that is the anomaly.
ROW = 17

Column = list[Any]
# Writes a value as text.
Writer = Callable[[Any], str]
# Makes a column, given random numbers, the number of rows, and whether it is the batch.
Maker = Callable[[np.random.Generator, int, bool], Column]


def codes(rng: np.random.Generator, n_rows: int, is_batch: bool) -> Column:
    """Return names of orders, each only once."""
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZ"
    first = 50_000 * is_batch + rng.permutation(40_000)[:n_rows]
    return [f"{letters[number % 24]}{number:05d}{letters[number % 23]}" for number in first]


def amounts(rng: np.random.Generator, n_rows: int, is_batch: bool) -> Column:
    """Return prices around 40."""
    return [round(float(value), 2) for value in np.exp(rng.normal(3.7, 0.35, n_rows))]


def quantities(rng: np.random.Generator, n_rows: int, is_batch: bool) -> Column:
    """Return small whole numbers."""
    return [int(value) for value in rng.integers(1, 7, n_rows)]


def countries(rng: np.random.Generator, n_rows: int, is_batch: bool) -> Column:
    """Return a few levels."""
    return [str(value) for value in rng.choice(["DE", "FR", "IT", "US"], n_rows)]


def moments(rng: np.random.Generator, n_rows: int, is_batch: bool) -> Column:
    """Return minutes of office hours in the first months of 2024."""
    days = rng.integers(0, 80, n_rows)
    minutes = rng.integers(9 * 60, 17 * 60, n_rows)
    pairs = zip(days.tolist(), minutes.tolist(), strict=True)
    return [datetime(2024, 1, 3) + timedelta(days=day, minutes=minute) for day, minute in pairs]


def flags(rng: np.random.Generator, n_rows: int, is_batch: bool) -> Column:
    """Return truth values."""
    return [bool(value) for value in rng.random(n_rows) < 0.4]


MAKERS: dict[str, Maker] = {
    "order": codes,
    "amount": amounts,
    "quantity": quantities,
    "country": countries,
    "shipped": moments,
    "express": flags,
}
KINDS = {
    "order": "identifier",
    "amount": "number",
    "quantity": "number",
    "country": "category",
    "shipped": "date",
    "express": "boolean",
}


def plain(value: Any) -> str:
    """Write a value as most programs do."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.2f}"
    return f"{value:%Y-%m-%d %H:%M}" if isinstance(value, datetime) else str(value)


@dataclass(frozen=True)
class Orders:
    """A table: its columns as values, and how they are written.

    Parameters
    ----------
    columns : dict from str to list
    writers : mapping from str to callable
        How the cells of a column are written, if not as usual.
    names : mapping from str to str
        What columns are called in the file, if not as here.
    """

    columns: dict[str, Column]
    writers: Mapping[str, Writer] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def header(self) -> list[str]:
        """The names in the file."""
        return [self.names.get(name, name) for name in self.columns]

    @property
    def cells(self) -> list[list[str]]:
        """The rows as texts."""
        columns = [
            [
                value if isinstance(value, Text) else self.writers.get(name, plain)(value)
                for value in column
            ]
            for name, column in self.columns.items()
        ]
        return [list(row) for row in zip(*columns, strict=True)]

    def renamed(self, names: Mapping[str, str]) -> Orders:
        """Return the table with other names."""
        return replace(self, names={**self.names, **names})

    def without(self, *names: str) -> Orders:
        """Return the table without some columns."""
        kept = {name: column for name, column in self.columns.items() if name not in names}
        return replace(self, columns=kept)

    def to_csv(self, separator: str = ",", *, quotes_all: bool = False) -> str:
        """Return the table as delimited text."""
        text = io.StringIO(newline="")
        dialect = "unix" if quotes_all else "excel"
        writer = csv.writer(text, dialect, delimiter=separator, lineterminator="\n")
        writer.writerows([self.header, *self.cells])
        return text.getvalue()


class Text(str):
    """A cell that is written as it is."""


def make_orders(
    seed: int,
    makers: Mapping[str, Maker],
    column: str,
    anomaly: Any,
    writers: Mapping[str, Writer] | None = None,
) -> tuple[Orders, Orders]:
    """Return known-normal rows and a batch, in which one cell is anomalous.

    Parameters
    ----------
    seed : int
    makers : mapping from str to callable
        Makes each column.
    column : str
        The column of the anomaly.
    anomaly : object
        Its value.
    writers : mapping from str to callable, optional
        How columns are written.
    """
    tables = []
    for is_batch, n_rows in ((False, N_NORMAL), (True, N_BATCH)):
        rng = np.random.default_rng([seed, is_batch])
        columns = {name: maker(rng, n_rows, is_batch) for name, maker in makers.items()}
        tables.append(Orders(columns, writers or {}))
    tables[1].columns[column][ROW] = anomaly
    return tables[0], tables[1]


def levels(*words: str) -> Maker:
    """Return a maker of levels that are equally frequent."""
    return lambda rng, n_rows, is_batch: [str(word) for word in rng.choice(words, n_rows)]


def numbers(low: float, high: float, digits: int = 2) -> Maker:
    """Return a maker of numbers within bounds."""
    return lambda rng, n_rows, is_batch: [
        round(float(value), digits) for value in rng.uniform(low, high, n_rows)
    ]


def sometimes(maker: Maker, share: float, *others: Any) -> Maker:
    """Return a maker that puts other values in a share of the cells."""

    def make(rng: np.random.Generator, n_rows: int, is_batch: bool) -> Column:
        values = maker(rng, n_rows, is_batch)
        replaced = rng.random(n_rows) < share
        return [
            others[rng.integers(len(others))] if is_other else value
            for value, is_other in zip(values, replaced.tolist(), strict=True)
        ]

    return make


def grouped(
    value: float, mark: str, decimal: str, sizes: Sequence[int] = (3,), digits: int = 2
) -> str:
    """Write a number with groups of digits; `sizes` are those of the last groups, then repeated."""
    whole, fraction = f"{abs(value):.{digits}f}".split(".")
    parts: list[str] = []
    sizes = list(sizes)
    while len(whole) > sizes[0]:
        parts.insert(0, whole[-sizes[0] :])
        whole = whole[: -sizes[0]]
        sizes = sizes[1:] or sizes
    sign = "-" if value < 0 else ""
    return sign + mark.join([whole, *parts]) + decimal + fraction
