"""From a detection run to what its page carries."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qms22.report.bins import Bins, bin_feature, bin_scores
from qms22.report.columns import pack_column
from qms22.report.data import DetectionRun, Reason, ranking
from qms22.report.payload import Payload, plain_number
from qms22.report.truth import Ties, roc_points

# A page of more rows is slow to open; of a larger batch it holds the most suspicious ones.
MOST_ROWS = 100_000


def kept_rows(run: DetectionRun) -> int:
    """Count the rows that the page holds."""
    return min(len(run.rows), max(MOST_ROWS, run.k))


def prepare(run: DetectionRun) -> str:
    """Pack all that the page needs: rows come in the order of their ranks.

    Parameters
    ----------
    run : DetectionRun

    Returns
    -------
    str
        As `Payload.pack` gives it; `_scripts/data.js` reads it.
    """
    payload = Payload()
    order = ranking(run.scores)
    ranked = np.asarray(run.scores, dtype=np.float64)[order]
    n_kept = kept_rows(run)
    ties = Ties.of(ranked)
    return payload.pack(
        {
            "nRows": len(ranked),
            "nKept": n_kept,
            "nNormal": len(run.normal),
            "k": int(run.k),
            "columns": list(_columns(run, order[:n_kept], payload)),
            "scores": _scores(ranked, n_kept, payload),
            "reach": payload.add(ties.reach()[:n_kept].astype(np.uint32)),
            "truth": _truth(run, order, ties, payload),
            "features": list(_features(run, order[:n_kept], payload)),
            "reasons": [[_reason(reason) for reason in row] for row in run.reasons[:n_kept]],
        }
    )


def _columns(run: DetectionRun, order: NDArray[Any], payload: Payload) -> Iterator[dict[str, Any]]:
    """Pack rank, score, id and truth, then the columns of the rows."""
    taken = {str(name) for name in run.rows.columns}
    scores = pd.Series(np.asarray(run.scores, dtype=np.float64)[order])
    own = [
        ("rank", "rank", pd.Series(np.arange(1, len(order) + 1))),
        ("score", "score", scores),
        ("id", *_ids(run, order)),
    ]
    if run.truth is not None:
        words = pd.Series(np.where(run.truth[order], "outlier", "normal"))
        own.append(("truth", "truth", words))
    for role, name, values in own:
        yield {"role": role, **pack_column(_unlike(taken, name), values, payload)}
    for position, name in enumerate(run.rows.columns):
        values = run.rows.iloc[:, position].iloc[order].reset_index(drop=True)
        yield {"role": "value", **pack_column(str(name), values, payload)}


def _ids(run: DetectionRun, order: NDArray[Any]) -> tuple[str, pd.Series]:
    if run.ids is not None:
        return "id", pd.Series(run.ids).iloc[order].reset_index(drop=True)
    index = run.rows.index
    name = "row" if index.name is None else str(index.name)
    return name, index.to_series().iloc[order].reset_index(drop=True)


def _unlike(taken: Collection[str], name: str) -> str:
    """Give a heading that no column of the user has."""
    while name in taken:
        name = f"qms22_{name}"
    return name


def _scores(ranked: NDArray[np.float64], n_kept: int, payload: Payload) -> dict[str, Any]:
    edges, codes = bin_scores(ranked)
    counts = np.bincount(codes, minlength=len(edges) - 1)
    return {"edges": edges, "counts": counts.tolist(), "bins": payload.add(codes[:n_kept])}


def _truth(
    run: DetectionRun, order: NDArray[Any], ties: Ties, payload: Payload
) -> dict[str, Any] | None:
    if run.truth is None:
        return None
    found = ties.found(run.truth[order])[: kept_rows(run) + 1]
    return {
        "nOutliers": int(run.truth.sum()),
        "found": payload.add(found),
        "roc": roc_points(run.truth, np.asarray(run.scores, dtype=np.float64)),
    }


def _features(run: DetectionRun, order: NDArray[Any], payload: Payload) -> Iterator[dict[str, Any]]:
    for name in run.rows.columns:
        if name not in run.normal.columns:
            continue
        rows = run.rows[name].iloc[order]
        bins = bin_feature(run.normal[name], rows, np.arange(run.k))
        if bins is not None:
            yield {"name": str(name), **_pack_bins(bins, payload)}


def _pack_bins(bins: Bins, payload: Payload) -> dict[str, Any]:
    return {
        "kind": bins.kind,
        "edges": bins.edges,
        "labels": bins.labels,
        "normal": bins.normal,
        "nMissing": bins.n_missing,
        "isClipped": bins.is_clipped,
        "bins": payload.add(bins.codes),
    }


def _reason(reason: Reason) -> list[Any]:
    feature, drop, value, typical = reason
    return [str(feature), plain_number(float(drop)), _words(value), _words(typical)]


def _words(value: Any) -> str:
    """Write a value of a reason: numbers with the digits that matter."""
    if isinstance(value, bool | np.bool_ | str):
        return str(value)
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return f"{float(value):.6g}"
    if isinstance(value, tuple | list):
        return ", ".join(map(_words, value))
    return "–" if value is None or value is pd.NA or value is pd.NaT else str(value)
