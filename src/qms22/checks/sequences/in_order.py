"""Rows of one entity in order, and the columns of what some of them say about the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qms22.checks.arrays import Floats, Ints
from qms22.checks.check import Check
from qms22.checks.copies import cell_hashes, derived_name, number_columns
from qms22.tables.columns.cells import Cells, Columns, count_rows


class InOrder(NamedTuple):
    """The rows of a table in order, those of an entity together."""

    rows: Ints
    entities: Ints  # the number of the entity of each of these, ascending

    @classmethod
    def of(cls, rows: Columns, entity: str, date: str) -> InOrder:
        """Return rows in order of a date, or as they are if there is none."""
        n_rows = count_rows(rows)
        keys = cell_hashes(rows[entity]) if entity else np.zeros(n_rows, dtype=np.uint64)
        order = np.lexsort((rows[date].values, keys) if date in rows else (keys,))
        is_first = np.append(True, np.diff(keys[order]) != 0)[:n_rows]
        return cls(order, np.cumsum(is_first) - 1)

    def steps(self, values: Floats) -> Floats:
        """Return the differences of rows from the one before of the same entity."""
        steps: Floats = np.diff(values[self.rows])[np.diff(self.entities) == 0]
        return steps

    def put(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return numbers of rows in order as those of the table."""
        found = np.empty_like(numbers)
        found[..., self.rows] = numbers
        return found


# The rows of a table in order, by the column of entities; "" stands for the whole table.
Orders: TypeAlias = Callable[[str], InOrder]


def orders_of(rows: Columns, date: str) -> Orders:
    """Return the rows of a table in order, for each column of entities computed once."""
    return cache(lambda entity: InOrder.of(rows, entity, date))


@dataclass(frozen=True)
class Derived(ABC):
    """Columns of what rows of an entity say about each other, such as how many are equal."""

    name: str  # the column that they are about
    entity: str  # the column that says which rows belong together; "" for the whole table
    date: str  # by which rows are in order; "" for the order of the table
    kinds: ClassVar[tuple[str, ...]]  # what the derived columns have

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to blame: that of the numbers, and that of the entities."""
        return (self.name, self.entity) if self.entity else (self.name,)

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns without which there is nothing to derive."""
        return self.columns

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the derived columns."""
        return tuple(derived_name(kind, self.entity, self.name) for kind in self.kinds)

    @abstractmethod
    def numbers(self, rows: Columns, orders: Orders, *, are_normal: bool = False) -> Floats:
        """Compute the derived columns, one in each line."""

    @abstractmethod
    def learn(self, rows: Columns) -> Check | None:
        """Learn what is usual from known-normal rows with the derived columns."""


def derive(
    derived: Sequence[Derived], rows: Columns, *, are_normal: bool = False
) -> dict[str, Cells]:
    """Return the derived columns of rows, where there is what they are derived from."""
    orders = orders_of(rows, derived[0].date if derived else "")
    found: dict[str, Floats] = {}
    for each in derived:
        if rows.keys() >= set(each.needs):
            numbers = each.numbers(rows, orders, are_normal=are_normal)
            found |= zip(each.keys, np.atleast_2d(numbers), strict=True)
    return number_columns(found)
