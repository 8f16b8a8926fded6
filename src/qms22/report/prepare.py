"""The content of a page, packed as the data that its scripts read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qms22.decisions.curve import Curve
from qms22.metrics import roc
from qms22.report.bins import bin_feature, bin_scores
from qms22.report.content import NAME, P_VALUE, RANK, SCORE, PageContent, RowContext
from qms22.report.packed_columns import pack_column
from qms22.report.packed_reasons import order_columns, pack_reasons
from qms22.report.payload import Payload

# A curve of more points looks the same.
_MOST_POINTS = 400


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
    scaled = [round((point - low) / ((high - low) or 1.0), 3) for point in points]
    *past, here = scaled
    return {"past": past, "here": here}


def _curve(curve: Curve | None) -> dict[str, Any] | None:
    """Pack what bounds the number of normal rows among the first k, as `Curve.of_first` does."""
    if curve is None:
        return None
    return {
        "nWithin": curve.n_within.tolist(),
        "limits": curve.limits.tolist(),
        "mostNormal": curve.most_normal,
        "confidence": curve.confidence,
    }


def _columns(content: PageContent, payload: Payload) -> Iterator[dict[str, Any]]:
    """Pack rank, name, truth, score and p-value, then the columns of the batch that matter."""
    results, rows = content.results, content.rows
    for role, at in (("rank", RANK), ("id", NAME), ("score", SCORE), ("p", P_VALUE)):
        if at < results.shape[1]:
            packed = pack_column(results.iloc[:, at], None, payload)
            yield {"name": str(results.columns[at]), "role": role, **packed}
    if content.truth is not None:
        words = pd.Series(np.where(content.truth[: len(rows)], "outlier", "normal"))
        name = "truth"
        while name in rows.columns or name in results.columns:
            name += "_"
        yield {"name": name, "role": "truth", **pack_column(words, None, payload)}
    for at, matters in order_columns(content):
        name = str(rows.columns[at])
        packed = pack_column(rows.iloc[:, at], content.cells.get(name), payload)
        yield {"name": name, "role": "value", "place": at, "matters": matters, **packed}


def _marked(content: PageContent, payload: Payload) -> list[dict[str, Any]]:
    """Pack the rows that were marked before and not searched: names, marks and columns."""
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
    n_kept = len(content.rows)
    return {
        "nOutliers": int(content.truth.sum()),
        "found": payload.add(outliers_found(content.scores, content.truth)[: n_kept + 1]),
        "roc": roc_points(content.truth, content.scores),
    }


def _features(content: PageContent, payload: Payload) -> Iterator[dict[str, Any]]:
    for name, cells in content.cells.items():
        if name in content.normal:
            bins = bin_feature(content.normal[name], cells, content.flagged)
            if bins is not None:
                yield {
                    "name": name,
                    "kind": bins.kind,
                    "edges": bins.edges,
                    "labels": bins.labels,
                    "normal": bins.normal,
                    "nMissing": bins.n_missing,
                    "isClipped": bins.is_clipped,
                    "bins": payload.add(bins.codes),
                }


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
