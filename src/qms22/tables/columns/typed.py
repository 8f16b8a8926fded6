"""Columns converted to a form, and columns of two tables in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from qms22.tables.columns.cells import Cells, Form, from_codes, show_value
from qms22.tables.texts.words import BOOLEANS, TRUTHS, number_text

# Reads texts as numbers, with NaN for those that do not fit.
Reader: TypeAlias = Callable[[Sequence[str]], NDArray[np.float64]]


def to_numbers(cells: Cells, form: Form, read: Reader) -> Cells:
    """Return a column of numbers, booleans or dates; other cells become words.

    Infinite values become words, too: no detector could take them. The column may be stored in any
    form; `read` reads the texts of such a column.
    """
    if cells.form == form or {cells.form, form} == {"number", "boolean"}:
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
    if form == "other":  # lists and the like
        return "(no text)"
    return number_text(value) if form == "number" else show_value(form, value)


def join_cells(name: str, first: Cells, second: Cells) -> Cells:
    """Return the rows of two tables in one column, as they are stored."""
    # A column without values is of any form.
    known = [each for each in (first, second) if each.is_text or each.has_value.any()] or [first]
    forms = {each.form for each in known}
    if len(forms) == 1 and not known[0].is_text:
        values = np.concatenate([first.values, second.values])
        return Cells(name, known[0].form, values, has_commas=known[0].has_commas)
    is_declared = forms == {"category"} and len({frozenset(each.levels) for each in known}) == 1
    first, second = to_levels(first), to_levels(second)
    places = second.level_places(first.levels)
    is_new = places < 0
    places = np.where(is_new, len(first.levels) + np.cumsum(is_new) - 1, places)
    codes = np.append(places, -1)[second.values]
    both = np.concatenate([first.values, codes.astype(first.values.dtype)])
    levels = (*first.levels, *compress(second.levels, is_new.tolist()))
    # The two may write true in different ways.
    return from_codes(name, "category" if is_declared else "text", both, levels)
