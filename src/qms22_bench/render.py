"""Tables and figures as text: the same blocks for the page and for Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

NOTHING = "–"


@dataclass(frozen=True)
class ShownColumn:
    """A column to show: its key in the data, its heading, how to format it, and a help text."""

    key: str
    heading: str
    kind: str = "text"
    help: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell as text, and its sort key; cells with an empty key come last."""

    text: str
    sort: str


@dataclass(frozen=True)
class TableBlock:
    """A table to show; the first cell of a row is its name."""

    name: str
    caption: str
    columns: Sequence[ShownColumn]
    rows: Sequence[Sequence[Cell]]
    footer: Sequence[Sequence[Cell]] = ()
    search: str = ""

    def markdown(self) -> str:
        """Return the table in GitHub's Markdown."""
        rules = [":--" if column.kind == "text" else "--:" for column in self.columns]
        lines = [[escape_markdown(column.heading) for column in self.columns], rules]
        lines += [[escape_markdown(cell.text) for cell in row] for row in self.rows]
        lines += [[_bold(escape_markdown(cell.text)) for cell in row] for row in self.footer]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"**{escape_markdown(self.caption)}**\n\n{table}"


@dataclass(frozen=True)
class FigureBlock:
    """A figure to show: inline SVG for the page, a PNG file for everything else."""

    name: str
    caption: str
    svg: str
    png: bytes = field(repr=False)

    def markdown(self) -> str:
        """Return a link to the PNG file beside the report."""
        return f"![{escape_markdown(self.caption)}]({self.name}.png)"


@dataclass(frozen=True)
class Section:
    """A part of the report: paragraphs, then tables and figures."""

    name: str
    title: str
    text: Sequence[str] = ()
    blocks: Sequence[TableBlock | FigureBlock] = ()

    def markdown(self) -> str:
        """Return the section in Markdown."""
        parts = [f"## {escape_markdown(self.title)}"]
        parts += [escape_markdown(paragraph) for paragraph in self.text]
        parts += [block.markdown() for block in self.blocks]
        return "\n\n".join(parts)


def table_block(
    name: str,
    caption: str,
    table: pd.DataFrame,
    columns: Sequence[ShownColumn],
    *,
    footer: Sequence[Mapping[str, Any]] = (),
    search: str = "",
) -> TableBlock:
    """Return a table of some columns of a DataFrame.

    Parameters
    ----------
    name : str
        Its id on the page.
    caption : str
    table : DataFrame
    columns : sequence of ShownColumn
        Columns without any value are left out.
    footer : sequence of mappings
        Rows for the bottom: values by column key. Cells without a value stay empty.
    search : str
        Label of a search box for the first column; an empty label means no box.
    """
    shown = [column for column in columns if not _all_missing(table[column.key])]
    records = table.to_dict("records")
    rows = [[_cell(record[column.key], column.kind) for column in shown] for record in records]
    last = [[_cell(entry.get(column.key, ""), column.kind) for column in shown] for entry in footer]
    return TableBlock(name, caption, shown, rows, last, search)


def escape_markdown(text: str) -> str:
    """Escape text, so that it is not read as Markdown or HTML and stays in its cell."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace("\\", "\\\\")
    for sign in "|*`[]":
        text = text.replace(sign, "\\" + sign)
    return text


def describe(value: Any) -> str:
    """Return a value as text; lists and mappings become one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {describe(entry)}" for key, entry in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(describe(entry) for entry in value)
    return str(value)


def seconds_text(value: float) -> str:
    """Format seconds (or megabytes) with two or three significant digits."""
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def p_text(value: float) -> str:
    """Format a p-value with four decimals, or with an exponent if it is below 0.0001."""
    return f"{value:.4f}" if value >= 0.0001 else f"{value:.1e}"


_WRITERS: dict[str, Callable[[Any], str]] = {
    "text": str,
    "count": lambda value: f"{value:,.0f}".replace(",", "\N{THIN SPACE}"),
    "auc": lambda value: f"{value:.4f}",
    "signed": lambda value: f"{value:+.4f}".replace("-", "\N{MINUS SIGN}"),
    "rank": lambda value: f"{value:.2f}",
    "ranks": lambda value: f"{value:g}",
    "seconds": seconds_text,
    "ratio": lambda value: f"{value:.3g}" if value < 1000 else f"{value:.0f}",
    "p": p_text,
}


def _cell(value: Any, kind: str) -> Cell:
    if isinstance(value, str):
        return Cell(value, value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return Cell(NOTHING, "")
    return Cell(_WRITERS[kind](value), str(value) if kind == "text" else repr(float(value)))


def _all_missing(values: pd.Series) -> bool:
    return len(values) > 0 and bool((values.isna() | (values == "")).all())


def _bold(text: str) -> str:
    return f"**{text}**" if text else ""
