"""Conditions on numbers and days: ranges with round limits, and values outside the normal ones."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from qms22.detection.findings.subgroups import MOST_LISTED, Attribute, Show, join_some
from qms22.tables.columns.date_parts import DAY

# Numbers with more different values are put into about as many bins, each of 1.6 % of the rows.
_MOST_BINS = 64


def round_between(low: float, high: float) -> float:
    """Return the roundest number between two others."""
    if low < 0 < high:
        return 0.0
    largest = max(abs(low), abs(high))
    if not (low < high and math.isfinite(high - low)) or largest == 0:
        return low
    exponent = math.floor(math.log10(largest)) + 1
    for power in range(exponent, math.floor(math.log10(high - low)) - 2, -1):
        for step in (10.0**power, 5 * 10.0 ** (power - 1)):
            number = float(f"{(math.floor(low / step) + 1) * step:.12g}")
            if low < number < high:
                return number
    return (low + high) / 2


class Scale:
    """The numbers or days of a column, known-normal rows first, and how to write limits."""

    def __init__(
        self, name: str, values: NDArray[np.float64], n_known: int, show: Show, *, is_date: bool
    ) -> None:
        self.name, self.values, self.n_known, self._show = name, values, n_known, show
        self.is_date = is_date
        self.known = _distinct(values[:n_known])
        self.distinct = np.union1d(self.known, _distinct(values[n_known:]))
        self.is_whole = bool((self.distinct == np.rint(self.distinct)).all())

    def show(self, value: float) -> str:
        """Return a number, or a day, as the table writes it."""
        return self._show(value * DAY if self.is_date else value)

    def limit(self, low: float, high: float, *, is_above: bool) -> float:
        """Return the limit of values outside the normal ones: a round number if they have decimals.

        Below the normal ones, values are less than it; above, at least it.
        """
        if not self.is_date and (not self.is_whole or low < 0 < high):
            return round_between(low, high)
        return high if is_above else float(np.nextafter(low, math.inf))

    def tail(self, limit: float, *, is_above: bool) -> tuple[str, str]:
        """Return the text of all values from a limit on, or of all below it."""
        at = int(np.searchsorted(self.distinct, limit))
        below, above = self.distinct[at - 1], self.distinct[at]
        is_outside = below >= self.known[-1] if is_above else above <= self.known[0]
        signs = (">", ">=") if is_above else ("<", "<")
        if self.is_date:
            sign, limit = "from" if is_above else "before", above
        elif below < 0 <= above or (is_above and below == 0):
            sign, limit = signs[int(below < 0)], 0.0
        elif self.is_whole:
            sign, limit = (">=", above) if is_above else ("<=", below)
        else:
            if is_outside or len(self.distinct) <= _MOST_BINS:
                limit = round_between(below, above)
            sign = signs[int(limit == above)]
        remark = "outside all normal rows" if is_outside else ""
        return f"{self.name} {sign} {self.show(limit)}", remark


def _distinct(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.unique(values[~np.isnan(values)])


def range_attribute(scale: Scale) -> Iterator[Attribute]:
    """Yield in which range a number is: values if there are few, or else bins of round limits."""
    values, distinct, name, show = scale.values, scale.distinct, scale.name, scale.show
    if len(distinct) < 2:
        return
    is_discrete = len(distinct) <= _MOST_BINS
    edges = distinct[1:] if is_discrete else _edges(scale)
    n_bins = len(edges) + 1
    codes = np.where(np.isnan(values), 0, 1 + np.searchsorted(edges, values, side="right"))
    first, last = np.triu_indices(n_bins)
    is_tail = (first == 0) | (last == n_bins - 1)
    is_all = last - first == n_bins - 1
    costs = np.where(is_tail, math.log(4 * n_bins), math.log(n_bins * (n_bins + 1)))

    def label(low: int, high: int) -> tuple[str, str]:
        if is_discrete and low == high:
            return f"{name} = {show(distinct[low - 1])}", ""
        if high == n_bins:
            return scale.tail(edges[low - 2], is_above=True)
        if low == 1:
            return scale.tail(edges[high - 1], is_above=False)
        upper = distinct[high - 1] if is_discrete else edges[high - 1]
        return f"{name} {show(edges[low - 2])} to {show(upper)}", ""

    spans = np.stack([first, last], axis=1)[~is_all] + 1
    yield Attribute(name, "value", codes, spans, costs[~is_all], label, n_bins + 1)


def _edges(scale: Scale) -> NDArray[np.float64]:
    """Return round numbers, or days, between which there are about equally many values."""
    present = np.sort(scale.values[~np.isnan(scale.values)])
    at = np.arange(1, _MOST_BINS) * len(present) // _MOST_BINS
    if scale.is_date:
        edges = present[at]
    else:
        reach = len(present) // (2 * _MOST_BINS)
        pairs = zip(present[at - reach], present[at + reach], strict=True)
        edges = np.array([round_between(low, high) for low, high in pairs])
    return np.unique(edges[(edges > present[0]) & (edges <= present[-1])])


def outside_attribute(scale: Scale, flagged: NDArray[np.intp]) -> Iterator[Attribute]:
    """Yield whether a number is no normal one, and below, among or above those."""
    values, known, name = scale.values, scale.known, scale.name
    others = np.setdiff1d(_distinct(values[scale.n_known + flagged]), known)
    below, above = others[others < known[0]], others[others > known[-1]]
    is_within = (others > known[0]) & (others < known[-1]) & (len(known) <= _MOST_BINS / 2)
    within = others[is_within]
    codes = np.zeros(len(values), dtype=np.intp)
    limits: dict[int, float] = {}
    if len(below):
        limits[1] = scale.limit(below[-1], known[0], is_above=False)
        codes[values < limits[1]] = 1
    codes[np.isin(values, within)] = 2
    if len(above):
        limits[3] = scale.limit(known[-1], above[0], is_above=True)
        codes[values >= limits[3]] = 3
    # A tail of so many values, out of all tails; or one set out of all sets of this size.
    ways = []
    for side in limits:
        size = len(np.unique(values[codes == side]))
        ways.append((side, side, math.log(2 * size * (size + 1)) if size else 0.0))
    if len(within):
        ways.append((1, 3, math.log(2) + len(others) * math.log(len(scale.distinct))))
    elif len(limits) == 2:
        ways.append((1, 3, sum(cost for *_, cost in ways)))
    if not ways:
        return

    def label(low: int, high: int) -> tuple[str, str]:
        if low == high:
            return scale.tail(limits[low], is_above=low == 3)
        if not len(within):
            text, remark = scale.tail(limits[1], is_above=False)
            other, _ = scale.tail(limits[3], is_above=True)
            return f"{text} or {other.removeprefix(name + ' ')}", remark
        if len(others) > MOST_LISTED:
            return f"{name} is none of the {len(known)} normal values", ""
        return f"{name} = {join_some([scale.show(value) for value in others], 'or')}", "never seen"

    spans = np.array([way[:2] for way in ways], dtype=np.intp)
    costs = math.log(3) + np.array([cost for *_, cost in ways])
    yield Attribute(name, "new", codes, spans, costs, label, 4)
