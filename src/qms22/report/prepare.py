"""The content of a page, packed as the data that its scripts read."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from qms22.report.bins import bin_feature, bin_scores
from qms22.report.columns import pack_column
from qms22.report.content import NAME, P_VALUE, RANK, SCORE, PageContent, PageReason
from qms22.report.payload import Payload, plain_number
from qms22.report.truth import outliers_found, roc_points, rows_reached


def pack_content(content: PageContent) -> str:
    """Return all that the page needs, packed by `Payload`; `_scripts/data.js` reads it."""
    payload = Payload()
    n_kept = len(content.rows)
    return payload.pack(
        {
            "nRows": len(content.scores),
            "nKept": n_kept,
            "flagged": payload.add(content.flagged.astype(np.uint8)),
            "columns": list(_columns(content, payload)),
            "scores": _scores(content, payload),
            "reach": payload.add(rows_reached(content.scores, n_kept).astype(np.uint32)),
            "truth": _truth(content, payload),
            "features": list(_features(content, payload)),
            "reasons": {
                rank: [_reason(reason) for reason in row] for rank, row in content.reasons.items()
            },
        }
    )


def _columns(content: PageContent, payload: Payload) -> Iterator[dict[str, Any]]:
    """Pack rank, score, p-value, name and truth, then the columns of the batch."""
    results, rows = content.results, content.rows
    for role, at in (("rank", RANK), ("score", SCORE), ("p", P_VALUE), ("id", NAME)):
        if at < results.shape[1]:
            packed = pack_column(results.iloc[:, at], None, payload)
            yield {"name": str(results.columns[at]), "role": role, **packed}
    if content.truth is not None:
        words = pd.Series(np.where(content.truth[: len(rows)], "outlier", "normal"))
        name = "truth"
        while name in rows.columns or name in results.columns:
            name += "_"
        yield {"name": name, "role": "truth", **pack_column(words, None, payload)}
    for at, name in enumerate(map(str, rows.columns)):
        packed = pack_column(rows.iloc[:, at], content.cells.get(name), payload)
        yield {"name": name, "role": "value", **packed}


def _scores(content: PageContent, payload: Payload) -> dict[str, Any]:
    edges, counts, codes = bin_scores(content.scores, len(content.rows))
    return {"edges": edges, "counts": counts, "bins": payload.add(codes)}


def _truth(content: PageContent, payload: Payload) -> dict[str, Any] | None:
    if content.truth is None:
        return None
    n_kept = len(content.rows)
    return {
        "nOutliers": int(content.truth.sum()),
        "nFlagged": int(content.truth[:n_kept][content.flagged].sum()),
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


def _reason(reason: PageReason) -> list[Any]:
    name, drop, value, usual = reason
    return [name, plain_number(float(drop)), _words(value), _words(usual)]


def _words(value: Any) -> str:
    """Write a value of a reason, numbers with the digits that matter."""
    if isinstance(value, bool | np.bool_ | str):
        return str(value)
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return f"{float(value):.6g}"
    return "–" if value is None or value is pd.NA or value is pd.NaT else str(value)
