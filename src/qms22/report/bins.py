"""Histograms of columns: the bin of each row, and the number of normal rows in each bin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22.tables.columns.cells import Cells
from qms22.tables.columns.typed import join_cells, to_levels

# The largest byte stands for a missing value: all numbers of bins are less.
MISSING = 255
# Bars that can be told apart in a small picture, and in the wide one of the scores.
_MOST_BINS = 40
_SCORE_BINS = 60
# More bars with names are hard to read.
_MOST_LEVELS = 12
# More levels than this, most of them in one row only, are names or free text: no histogram.
_FEW_LEVELS = 50


@dataclass(frozen=True, eq=False)
class Bins:
    """A column of the normal and of the unlabeled rows, in the same bins.

    The kind is "number", "date" (seconds since 1970), both with `edges`, or "level", with `labels`
    of the bins. `normal` counts the normal rows in each bin; `n_missing` counts those without a
    value, for which levels have a bin. `codes` has the bin of each unlabeled row, or MISSING. If it
    `is_clipped`, the outermost bins also hold values beyond them.
    """

    kind: str
    edges: list[float]
    labels: list[str]
    normal: list[int]
    n_missing: int
    codes: NDArray[np.uint8]
    is_clipped: bool = False


def bin_feature(normal: Cells, rows: Cells, flagged: NDArray[np.bool_]) -> Bins | None:
    """Return the bins of a column of the normal and of the unlabeled rows.

    Levels of flagged rows are shown before others. None means that there is nothing to draw: no
    values, or texts that hardly ever recur.
    """
    forms = {normal.form, rows.form}
    if forms == {"number"}:
        return _bin_numbers("number", normal.values, rows.values)
    if forms == {"date"}:
        return _bin_numbers("date", normal.values / 1e6, rows.values / 1e6)
    if "other" in forms:
        return None
    joined = join_cells(rows.name, to_levels(rows), to_levels(normal))
    return _bin_levels(joined, len(rows.values), flagged)


def bin_scores(
    scores: NDArray[np.float64], n_kept: int
) -> tuple[list[float], list[int], NDArray[np.uint8]]:
    """Return edges and counts of a histogram of scores, and the bins of the first ones."""
    edges = _even_edges(float(scores.min()), float(scores.max()), _SCORE_BINS)
    counts, _ = np.histogram(scores, edges)
    return edges.tolist(), counts.tolist(), _codes(scores[:n_kept], edges)


def _bin_numbers(kind: str, normal: NDArray[Any], rows: NDArray[Any]) -> Bins | None:
    edges = _edges(normal[np.isfinite(normal)], rows[np.isfinite(rows)])
    if edges is None:
        return None
    counts = np.bincount(_codes(normal, edges), minlength=MISSING + 1).tolist()
    is_clipped = any(
        bool(((values < edges[0]) | (values > edges[-1])).any()) for values in (normal, rows)
    )
    n_bins, codes = len(edges) - 1, _codes(rows, edges)
    return Bins(kind, edges.tolist(), [], counts[:n_bins], counts[MISSING], codes, is_clipped)


def _edges(normal: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return edges that span the usual values and somewhat more.

    A single value far out must not squeeze all others into one bin.
    """
    known = np.concatenate([normal, rows])
    if not known.size:
        return None
    low, high = float(known.min()), float(known.max())
    if high / 4 - low / 4 > np.finfo(float).max / 16:  # the sums below would overflow
        return None
    first, last = np.quantile(normal if normal.size else known, (0.01, 0.99))
    room = 1.5 * (last - first)
    if room > 0:
        low, high = max(low, float(first - room)), min(high, float(last + room))
    if high - low >= 1 and (known == np.rint(known)).all():
        # Every bin holds the same number of integers; a bin with one more would stand out.
        low, high = np.floor(low), np.ceil(high)
        width = np.ceil((high - low + 1) / _MOST_BINS)
        edges = np.arange(low - 0.5, high + width, width, dtype=np.float64)
        return edges if (np.diff(edges) > 0).all() else _even_edges(low, high, 1)
    return _even_edges(low, high, _MOST_BINS)


def _even_edges(low: float, high: float, n_bins: int) -> NDArray[np.float64]:
    edges = np.linspace(low, high, n_bins + 1)
    if (np.diff(edges) > 0).all():
        return edges
    # One value, or values too close to each other for several bins.
    room = max(abs(low), abs(high), 1.0) / 2
    return np.array([low - room, high + room])


def _codes(values: NDArray[Any], edges: NDArray[np.float64]) -> NDArray[np.uint8]:
    places = np.searchsorted(edges, values, side="right") - 1
    places = np.clip(places, 0, len(edges) - 2)
    return np.where(np.isnan(values), MISSING, places).astype(np.uint8)


def _bin_levels(joined: Cells, n_rows: int, flagged: NDArray[np.bool_]) -> Bins | None:
    """Return the bins of a column of texts, in which the unlabeled rows come first."""
    names, ours, theirs = joined.levels, joined.values[n_rows:], joined.values[:n_rows]
    if not names or (len(names) > _FEW_LEVELS and len(names) > (len(ours) + len(theirs)) / 2):
        return None
    counts = [np.bincount(codes + 1, minlength=len(names) + 1) for codes in (ours, theirs)]
    of_flagged = np.bincount(theirs[flagged] + 1, minlength=len(names) + 1)
    # Show the levels that are frequent somewhere, if only among the flagged rows.
    shares = [count / max(count.sum(), 1) for count in (*counts, of_flagged)]
    weight = np.maximum.reduce(shares)[1:]
    n_shown = len(names) if len(names) <= _MOST_LEVELS + 1 else _MOST_LEVELS
    shown = np.argsort(-weight, kind="stable")[:n_shown]
    shown = shown[np.argsort(-counts[0][1:][shown], kind="stable")]
    labels = [names[level] for level in shown]
    bins = np.full(len(names) + 1, len(labels), dtype=np.uint8)
    bins[shown + 1] = np.arange(len(shown))
    if n_shown < len(names):
        labels.append(f"({len(names) - n_shown:,} others)")
    bins[0] = len(labels)
    if counts[0][0] or counts[1][0]:
        labels.append("(missing)")
    totals = np.bincount(bins[ours + 1], minlength=len(labels))[: len(labels)]
    return Bins("level", [], labels, totals.tolist(), 0, bins[theirs + 1])
