"""One trouble each: what the file is like, and what must come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from orders import KINDS, MAKERS, ROW, Maker, Orders, Text, Writer, make_orders

# Returns the files of a table by name; the flag tells whether it is the batch.
Layout = Callable[[Orders, bool], dict[str, bytes]]
_TITLE = {False: "normal", True: "batch"}


def text_file(
    change: Callable[[str], str] = str,
    *,
    separator: str = ",",
    codec: str = "utf-8",
    quotes_all: bool = False,
    suffix: str = "csv",
    only_batch: bool = False,
) -> Layout:
    """Return a layout: delimited text, changed in some way."""

    def layout(table: Orders, is_batch: bool) -> dict[str, bytes]:
        text = table.to_csv(separator, quotes_all=quotes_all)
        text = change(text) if is_batch or not only_batch else text
        return {f"{_TITLE[is_batch]}.{suffix}": text.encode(codec)}

    return layout


@dataclass(frozen=True)
class Case:
    """A trouble.

    Parameters
    ----------
    name : str
        The name of its directory.
    trouble : str
        What is wrong, or unusual.
    column : str
        The column of the anomaly.
    anomaly : object
        Its value.
    makers : mapping from str to callable
        Other columns, or more of them.
    writers : mapping from str to callable
        How columns are written.
    layout : callable
        Makes the files.
    change : callable
        Changes a table before.
    inputs : tuple of str
        The files as the command is given them.
    id : str or None
        The column that names rows.
    options : tuple of str
        Other options of the command.
    kinds : mapping from str to str or None
        Kinds of columns that are not as usual; with None nothing is said about a column.
    notes : tuple of str
        A part of each note.
    unread : tuple of str
        Columns whose values are not compared.
    within : int
        How many of the most suspicious rows must contain it. Of 80 rows nobody can say that
        another level, word or gap is rarer than one in 80, as other rows may be, too.
    blamed : str
        How its first reason begins, if not by the column of the anomaly.
    called : mapping from str to str
        What columns are called in the result, if not as in the file.
    """

    name: str
    trouble: str
    column: str = "amount"
    anomaly: Any = 980.0
    makers: Mapping[str, Maker] = field(default_factory=dict)
    writers: Mapping[str, Writer] = field(default_factory=dict)
    layout: Layout = field(default_factory=text_file)
    change: Callable[[Orders, bool], Orders] = lambda table, is_batch: table
    inputs: tuple[str, ...] = ("normal.csv", "batch.csv")
    id: str | None = "order"
    options: tuple[str, ...] = ()
    kinds: Mapping[str, str | None] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    within: int = 1
    blamed: str = ""
    called: Mapping[str, str] = field(default_factory=dict)

    def tables(self, seed: int) -> tuple[Orders, Orders]:
        """Return both tables."""
        makers = {**MAKERS, **self.makers}
        normal, batch = make_orders(seed, makers, self.column, self.anomaly, self.writers)
        return self.change(normal, False), self.change(batch, True)

    def files(self, seed: int) -> dict[str, bytes]:
        """Return the files by name."""
        normal, batch = self.tables(seed)
        return {**self.layout(normal, False), **self.layout(batch, True)}

    def expected(self, seed: int) -> dict[str, Any]:
        """Return what must come out, as JSON has it."""
        normal, batch = self.tables(seed)
        called = {name: batch.names.get(name, name) for name in batch.columns}
        called |= self.called
        kinds = {
            name: kind
            for name, kind in {**KINDS, **self.kinds}.items()
            if kind and name in normal.columns and name in batch.columns
        }
        values = {
            called[name]: [_plain_value(value) for value in normal.columns[name][:8]]
            for name, kind in kinds.items()
            if kind in ("number", "date") and name not in self.unread
        }
        return {
            "trouble": self.trouble,
            "inputs": list(self.inputs),
            "options": [*self.options, *([] if self.id is None else ["--id", self.id])],
            "kinds": {called[name]: kind for name, kind in kinds.items()},
            "values": values,
            "notes": list(self.notes),
            "row": ROW if self.id is None else batch.columns["order"][ROW],
            "within": self.within,
            "column": self.blamed or called[self.column],
        }


def _plain_value(value: Any) -> Any:
    """Return a value in JSON's types; None for words."""
    if isinstance(value, Text):
        return None
    return value.isoformat() if isinstance(value, datetime) else value
