"""Columns converted to a form; cells that do not fit become words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from qms22.tables.columns.cells import Cells, Form, show_value
from qms22.tables.texts.words import BOOLEANS, TRUTHS, is_number_text, number_text, parse_number

# Reads texts as numbers, with NaN for those that do not fit.
Reader: TypeAlias = Callable[[Sequence[str]], NDArray[np.float64]]

# The text of values that are neither numbers, texts nor dates, such as lists.
NO_TEXT = "(no text)"

_FITTING: dict[Form, tuple[Form, ...]] = {
    "number": ("number", "boolean"),
    "boolean": ("number", "boolean"),
    "date": ("date",),
}


def to_numbers(cells: Cells, form: Form, read: Reader) -> Cells:
    """Return a column of numbers, booleans or dates; other cells become words.

    Infinite values become words, too: no detector could take them. The column may be stored in any
    form; `read` reads the texts of such a column.
    """
    if cells.form in _FITTING[form]:
        values, levels, words = cells.values, cells.levels, cells.words
        is_odd = np.isinf(values)
        if form == "boolean":
            is_odd |= ~np.isnan(values) & ~np.isin(values, (0.0, 1.0))
        if is_odd.any():
            odd = to_levels(replace(cells, values=np.where(is_odd, values, np.nan)))
            values, levels, words = np.where(is_odd, np.nan, values), odd.levels, odd.values
        return replace(cells, form=form, values=values, levels=levels, words=words)
    texts = to_levels(cells)
    numbers = read(texts.levels)
    is_word = np.isnan(numbers)
    places = np.append(np.where(is_word, np.cumsum(is_word) - 1, -1), -1)
    levels = tuple(text for text, odd in zip(texts.levels, is_word.tolist(), strict=True) if odd)
    return replace(
        cells,
        form=form,
        values=np.append(numbers, np.nan)[texts.values],
        levels=levels,
        words=places[texts.values] if levels else None,
    )


def are_truths(levels: Sequence[str]) -> bool:
    """Return whether there are levels, and all of them are true or false in words."""
    return bool(levels) and all(text.strip().lower() in BOOLEANS for text in levels)


def read_booleans(texts: Sequence[str]) -> NDArray[np.float64]:
    """Read true and false in words."""
    return np.array([TRUTHS.get(text.strip().lower(), np.nan) for text in texts], dtype=np.float64)


def read_plain_numbers(texts: Sequence[str]) -> NDArray[np.float64]:
    """Read numbers as Python writes them."""
    fits = (parse_number(text) if is_number_text(text) else np.nan for text in texts)
    return np.fromiter(fits, dtype=np.float64, count=len(texts))


def to_levels(cells: Cells) -> Cells:
    """Return a column as texts, the same for 1 and 1.0."""
    if cells.is_text:
        return cells
    present = ~np.isnan(cells.values)
    different, places = np.unique(cells.values[present], return_inverse=True)
    codes = np.full(len(cells.values), -1, dtype=np.intp)
    codes[present] = places
    levels = tuple(_text(value, cells.form) for value in different.tolist())
    return replace(cells, form="text", values=codes, levels=levels, words=None)


def _text(value: float, form: Form) -> str:
    if form == "other":
        return NO_TEXT
    return number_text(value) if form == "number" else show_value(form, value)
