"""Columns as codes: the conditions that a finding may be made of, with their names.

A condition is a span of codes of an `Attribute`: a level, a range of numbers, hours of the day.
What the codes mean does not depend on which rows are known-normal, except for values that these
never have; the costs account for that (see `Attribute.costs`), so that p-values stay honest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from qms22.detection.findings.finding_numbers import Scale, outside_attribute, range_attribute
from qms22.detection.findings.subgroups import Attribute, Show, join_some
from qms22.tables.columns.cells import Cells, show_value
from qms22.tables.columns.date_parts import DAY

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def attributes_of(
    normal: Mapping[str, Cells],
    batch: Mapping[str, Cells],
    flagged: NDArray[np.intp],
    shows: Mapping[str, Show],
) -> list[Attribute]:
    """Return the attributes of the columns that both tables have.

    Values that no known-normal row has are of interest if some of the flagged rows have them.
    """
    names = [name for name in normal if name in batch]
    n_dates = sum(normal[name].form == "date" for name in names)
    found: list[Attribute] = []
    for name in names:
        known, searched = normal[name], batch[name]
        show = shows.get(name) or partial(show_value, known.form)
        forms = {known.form, searched.form}
        if forms <= {"text", "category"}:
            found += _level_attributes(known, searched, flagged)
        elif forms == {"boolean"}:
            levels = _as_levels(known, show), _as_levels(searched, show)
            found += _level_attributes(*levels, flagged)
        elif len(forms) == 1 and known.form in ("number", "date"):
            found += _number_attributes(known, searched, flagged, show, is_only_date=n_dates == 1)
    return [attribute for attribute in found if len(attribute.spans)]


def _as_levels(cells: Cells, show: Show) -> Cells:
    """Return a column of booleans, and words among them, as texts."""
    codes = np.where(cells.has_value, np.nan_to_num(cells.values), -1).astype(np.intp)
    if cells.words is not None:
        codes = np.where(cells.words >= 0, cells.words + 2, codes)
    return Cells(cells.name, "text", codes, (show(0.0), show(1.0), *cells.levels))


def _pool_texts(*tables: Cells) -> tuple[NDArray[np.intp], list[str]]:
    """Return texts as positions in common levels, which are sorted; -1 stays."""
    levels = sorted({level for cells in tables for level in cells.levels})
    parts = []
    for cells in tables:
        codes = cells.values if cells.is_text else cells.words
        codes = np.full(len(cells.values), -1) if codes is None else codes
        parts.append(np.append(cells.level_places(levels), -1)[codes])
    return np.concatenate(parts), levels


def _level_attributes(
    known: Cells, searched: Cells, flagged: NDArray[np.intp]
) -> Iterator[Attribute]:
    """Yield: which level, missing or not, and levels that no known-normal row has."""
    codes, levels = _pool_texts(known, searched)
    yield from _yes_or_no(known.name, "missing", codes < 0, 0.0, f"{known.name} is missing")
    yield from _text_attributes(known, "value", codes, levels, flagged, "never seen")


def _text_attributes(
    known: Cells,
    part: str,
    codes: NDArray[np.intp],
    levels: list[str],
    flagged: NDArray[np.intp],
    remark: str,
) -> Iterator[Attribute]:
    """Yield: which one of the known-normal texts, and whether it is one of the others, remarked."""
    name, n_known = known.name, len(known.values)
    seen = np.unique(codes[:n_known])
    seen = seen[seen >= 0]
    if len(seen):
        yield Attribute(
            name,
            part,
            codes + 1,
            np.stack([seen, seen], axis=1) + 1,
            np.full(len(seen), math.log(len(levels))),
            lambda first, last: (f"{name} = {levels[first - 1]}", ""),
            len(levels) + 1,
        )
    is_new = np.zeros(len(levels) + 1, dtype=bool)
    is_new[codes[n_known + flagged]] = True
    is_new[codes[:n_known]] = is_new[-1] = False
    new = [levels[at] for at in np.flatnonzero(is_new)]
    if new:
        # One set of levels out of all sets of this size.
        cost = math.log(2) + len(new) * math.log(len(levels) + 1)
        text = f"{name} = {join_some(new, 'or')}"
        yield from _yes_or_no(name, "new", is_new[codes], cost, text, remark)


def _yes_or_no(
    name: str, part: str, mask: NDArray[np.bool_], cost: float, text: str, remark: str = ""
) -> Iterator[Attribute]:
    """Yield an attribute with one condition, if some rows meet it."""
    if mask.any():
        span, costs = np.ones((1, 2), dtype=np.intp), np.array([cost])
        codes = mask.astype(np.intp)
        yield Attribute(name, part, codes, span, costs, lambda first, last: (text, remark), 2)


def _number_attributes(
    known: Cells, searched: Cells, flagged: NDArray[np.intp], show: Show, *, is_only_date: bool
) -> Iterator[Attribute]:
    """Yield: range, missing or not, outside the normal values, and words among the numbers."""
    name, n_known = known.name, len(known.values)
    values = np.concatenate([known.values, searched.values])
    gaps = np.isnan(values)
    if known.words is not None or searched.words is not None:
        codes, levels = _pool_texts(known, searched)
        kind = "not a date" if known.form == "date" else "not a number"
        yield from _text_attributes(known, "word", codes, levels, flagged, kind)
        gaps &= codes < 0
    yield from _yes_or_no(name, "missing", gaps, 0.0, f"{name} is missing")
    if known.form == "date":
        yield from _cyclic_attributes(name, values, is_only_date=is_only_date)
        values = values // DAY
    if np.isnan(values[:n_known]).all() or np.isnan(values[n_known:]).all():
        return
    scale = Scale(name, values, n_known, show, is_date=known.form == "date")
    yield from outside_attribute(scale, flagged)
    yield from range_attribute(scale)


def _cyclic_attributes(
    name: str, values: NDArray[np.float64], *, is_only_date: bool
) -> Iterator[Attribute]:
    prefix = "" if is_only_date else f"{name} "
    # 1970 began on a Thursday.
    hours, weekdays = values % DAY // (DAY / 24), (values // DAY + 3) % 7
    for part, times, n_times, show in (
        ("hour", hours, 24, _hour_range),
        ("weekday", weekdays, 7, _weekday_range),
    ):
        known = np.unique(times[~np.isnan(times)])
        if len(known) < 2:
            continue

        def label(first: int, last: int, show: Callable[[int, int], str] = show) -> tuple[str, str]:
            return prefix + show(first, last), ""

        first, length = (x.ravel() for x in np.indices((n_times, n_times // 2)))
        spans = np.stack([first, first + length], axis=1)
        costs = np.full(len(spans), math.log(len(spans)))
        codes = np.where(np.isnan(times), n_times, times).astype(np.intp)
        yield Attribute(name, part, codes, spans, costs, label, n_times)


def _hour_range(first: int, last: int) -> str:
    """Return hours as text, such as "2-4 a.m." or "10 p.m.-2 a.m."."""
    start, stop = first % 24, (last + 1) % 24
    names = {0: "midnight", 12: "noon"}
    halves = ["a.m." if hour < 12 else "p.m." for hour in range(24)]
    begin, end = (names.get(hour, f"{hour % 12} {halves[hour]}") for hour in (start, stop))
    if not {start, stop} & {*names} and halves[start] == halves[stop] and start < stop:
        begin = str(start % 12)
    return f"{begin}-{end}"


def _weekday_range(first: int, last: int) -> str:
    days = _WEEKDAYS[first % 7], _WEEKDAYS[last % 7]
    return days[0] if first == last else f"{days[0]} to {days[1]}"
