"""The content of a page, packed as the data that its scripts read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qms22.decisions.curve import Curve
from qms22.metrics import roc
from qms22.report.bins import bin_feature, bin_scores
from qms22.report.content import NAME, P_VALUE, RANK, SCORE, PageContent, RowContext
from qms22.report.packed_columns import Payload, alphabetical, pack_column
from qms22.tables.columns.column_names import free_name

if TYPE_CHECKING:
    from qms22.detection import RowReason

# A curve of more points looks the same.
_MOST_POINTS = 400
# The number of reasons that stands for "not known", and the most that a row keeps.
UNKNOWN = 255
_MOST_REASONS = UNKNOWN - 1

# If nothing is flagged, the first screen of rows decides which columns matter. Strengths, about
# −log p, count from one row in 150 on, since many normal rows have weak reasons, and up to a limit,
# since an absurd cell must not outweigh many odd ones.
_FIRST_ROWS = 20
_WEAK = 5.0
_STRONG = 30.0


def pack_content(content: PageContent) -> str:
    """Return all that the page needs, packed by `Payload`; `_scripts/data.js` reads it."""
    payload = Payload()
    n_kept = len(content.rows)
    return payload.pack(
        {
            "nRows": len(content.scores),
            "nKept": n_kept,
            "nFlagged": int(content.flagged.sum()),
            "isRate": content.is_rate,
            "curve": _curve(content.curve),
            "columns": list(_columns(content, payload)),
            "scores": _scores(content, payload),
            "reach": payload.add(rows_reached(content.scores, n_kept).astype(np.uint32)),
            "truth": _truth(content, payload),
            "features": list(_features(content, payload)),
            "reasons": pack_reasons(content.reasons, payload),
            "findings": [
                {
                    "name": finding.name,
                    "rows": payload.add(finding.rows.astype(np.uint32)),
                    "columns": list(finding.columns),
                }
                for finding in content.findings
            ],
            "marks": {row: mark for row, mark in enumerate(content.marks) if mark},
            "contexts": {
                row: {"text": context.text, "line": _line(context)}
                for row, context in content.contexts.items()
            },
            "marked": _marked(content, payload),
        }
    )


def _line(context: RowContext) -> dict[str, Any] | None:
    """Return the past of a row and the row as points from 0 to 1; None without a past."""
    if context.here is None or not np.isfinite(points := [*context.past, context.here]).all():
        return None
    low, high = min(points), max(points)
    *past, here = (round((point - low) / ((high - low) or 1.0), 3) for point in points)
    return {"past": past, "here": here}


def _curve(curve: Curve | None) -> dict[str, Any] | None:
    """Pack what bounds the number of normal rows among the first k, as `Curve.of_first` does."""
    if curve is None:
        return None
    steps = {"nWithin": curve.n_within.tolist(), "limits": curve.limits.tolist()}
    return {**steps, "mostNormal": curve.most_normal, "confidence": curve.confidence}


def _columns(content: PageContent, payload: Payload) -> Iterator[dict[str, Any]]:
    """Pack rank, name, truth, score and p-value, then the columns of the batch that matter."""
    results, rows = content.results, content.rows
    for role, at in (("rank", RANK), ("id", NAME), ("score", SCORE), ("p", P_VALUE)):
        if at < results.shape[1]:
            packed = pack_column(results.iloc[:, at], None, payload)
            yield {"name": str(results.columns[at]), "role": role, **packed}
    if content.truth is not None:
        words = pd.Series(np.where(content.truth[: len(rows)], "outlier", "normal"))
        name = free_name("truth", {*rows.columns, *results.columns})
        yield {"name": name, "role": "truth", **pack_column(words, None, payload)}
    for at, matters in order_columns(content):
        name = str(rows.columns[at])
        packed = pack_column(rows.iloc[:, at], content.cells.get(name), payload)
        yield {"name": name, "role": "value", "place": at, "matters": matters, **packed}


def _marked(content: PageContent, payload: Payload) -> list[dict[str, Any]]:
    if content.marked is None:
        return []
    return [
        {"name": str(name), **pack_column(content.marked.iloc[:, at], None, payload)}
        for at, name in enumerate(content.marked.columns)
    ]


def _scores(content: PageContent, payload: Payload) -> dict[str, Any]:
    edges, counts, codes = bin_scores(content.scores, len(content.rows))
    normal = None
    if content.normal_scores is not None:
        # Scores beyond those of the batch are counted in the outermost bars.
        inside = np.clip(content.normal_scores, edges[0], edges[-1])
        normal = np.histogram(inside, edges)[0].tolist()
    return {"edges": edges, "counts": counts, "normal": normal, "bins": payload.add(codes)}


def _truth(content: PageContent, payload: Payload) -> dict[str, Any] | None:
    if content.truth is None:
        return None
    found = outliers_found(content.scores, content.truth)[: len(content.rows) + 1]
    return {
        "nOutliers": int(content.truth.sum()),
        "found": payload.add(found),
        "roc": roc_points(content.truth, content.scores),
    }


def _features(content: PageContent, payload: Payload) -> Iterator[dict[str, Any]]:
    for name, cells in content.cells.items():
        if name in content.normal:
            bins = bin_feature(content.normal[name], cells, content.flagged)
            if bins is not None:
                packed = {"nMissing": bins.n_missing, "isClipped": bins.is_clipped}
                same = {each: getattr(bins, each) for each in ("kind", "edges", "labels", "normal")}
                yield {"name": name, **same, **packed, "bins": payload.add(bins.codes)}


def rows_reached(ranked: NDArray[np.float64], n_kept: int) -> NDArray[np.intp]:
    """Return for each of the first rows how many rows have at least its score.

    The scores are `ranked`: in descending order.
    """
    reached: NDArray[np.intp] = len(ranked) - np.searchsorted(ranked[::-1], ranked[:n_kept])
    return reached


def outliers_found(ranked: NDArray[np.float64], truth: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the number of outliers among the first 0, 1, …, n rows.

    If k divides rows of equal score, they count with their share of outliers, as in
    `qms22.metrics.true_positive_rate_at`: the mean over all ways to break the tie.
    """
    group = np.cumsum(np.concatenate([[True], ranked[1:] != ranked[:-1]])) - 1
    size, hits = np.bincount(group), np.bincount(group, weights=truth)
    rows_before, hits_before = np.cumsum(size) - size, np.cumsum(hits) - hits
    inside = np.arange(1, len(truth) + 1) - rows_before[group]
    return np.concatenate([[0.0], hits_before[group] + inside * (hits / size)[group]])


def roc_points(truth: NDArray[np.bool_], scores: NDArray[np.float64]) -> dict[str, Any] | None:
    """Return a ROC curve with few points, or None if all rows are of one kind."""
    if truth.all() or not truth.any():
        return None
    curve = roc(truth, scores)
    x, y = curve.thinned(_MOST_POINTS)
    return {"auc": round(curve.auc, 4), "x": x.round(5).tolist(), "y": y.round(5).tolist()}


def pack_reasons(reasons: Sequence[Sequence[RowReason] | None], payload: Payload) -> dict[str, Any]:
    """Pack the reasons of each row, None if not known; `_scripts/reasons.js` reads them."""
    kept = [row and row[:_MOST_REASONS] for row in reasons]
    counts = [UNKNOWN if row is None else len(row) for row in kept]
    listed = list(chain.from_iterable(row for row in kept if row))
    texts = alphabetical({reason.text for reason in listed})
    text_codes = {text: code for code, text in enumerate(texts)}
    groups: dict[tuple[str, ...], int] = {}
    group_codes = [groups.setdefault(reason.columns, len(groups)) for reason in listed]
    return {
        "texts": texts,
        "groups": [list(group) for group in groups],
        "counts": payload.add(np.array(counts, dtype=np.uint8)),
        "text": payload.add(_codes((text_codes[reason.text] for reason in listed), len(texts))),
        "group": payload.add(_codes(group_codes, len(groups))),
        "strength": payload.add(_percentages(listed, np.array([len(row) for row in kept if row]))),
    }


def order_columns(content: PageContent) -> list[tuple[int, bool]]:
    """Return places of columns, those that flagged rows blame first, and whether they do."""
    rows = np.flatnonzero(content.flagged)
    if not len(rows):
        rows = np.arange(min(_FIRST_ROWS, len(content.reasons)))
    weights: defaultdict[str, float] = defaultdict(float)
    for row in rows.tolist():
        for reason in content.reasons[row] or ():
            strength = min(max(float(np.nan_to_num(reason.strength)) - _WEAK, 0.1), _STRONG)
            for place, name in enumerate(reason.columns):
                weights[name] += strength / 2 if place else strength
    of_columns = [weights[str(name)] for name in content.rows.columns]
    order = sorted(range(len(of_columns)), key=lambda at: -of_columns[at])
    return [(at, of_columns[at] > 0) for at in order]


def _codes(codes: Iterable[int], n_levels: int) -> NDArray[Any]:
    return np.fromiter(codes, dtype=np.min_scalar_type(max(n_levels, 1)))


def _percentages(listed: Sequence[RowReason], sizes: NDArray[np.intp]) -> NDArray[np.uint8]:
    """Return the strength of each reason in percent of the strongest one of its row."""
    if not listed:
        return np.empty(0, dtype=np.uint8)
    strengths = np.clip(np.nan_to_num([reason.strength for reason in listed]), 0.0, 1e300)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    most = np.repeat(np.maximum.reduceat(strengths, starts), sizes)
    percentages = (strengths / np.where(most > 0, most, 1.0) * 100).round()
    return np.asarray(percentages, dtype=np.uint8)
