"""Contents of pages: a plausible one, a hostile one, a large one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from qms22.decisions.comparison import Comparison
from qms22.decisions.curve import bound_false
from qms22.decisions.moved_columns import MovedColumn
from qms22.decisions.ruler import Ruler
from qms22.decisions.verdict import Verdict
from qms22.detection import Finding, HistoryEntry, RowReason
from qms22.report.content import PageContent
from qms22.tables.columns.arrow_columns import frame_cells

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
FORMULA = "=cmd|' /C calc'!A0"
TURNED = "invoice\u202egpj.exe"

VERDICT = Verdict("anomalies", 0.0004, 31, 0.95, 1000)


def searched(
    time: str, batch: str, decision: Any, n_flagged: int, moved: Sequence[str], n_rows: int = 1000
) -> HistoryEntry:
    """An entry of a history."""
    return HistoryEntry(
        time=time,
        normal="normal.csv",
        batch=batch,
        decision=decision,
        sentence="",
        p_value=0.5,
        n_normal=500,
        n_rows=n_rows,
        n_flagged=n_flagged,
        moved=tuple((name, "higher") for name in moved),
        settings={},
        version="0.2",
    )


HISTORY = [
    searched(f"2026-10-{day:02d} 06:00", f"payments-{day}.csv", decision, n_flagged, moved)
    for day, decision, n_flagged, moved in [
        (1, "fine", 0, []),
        (2, "anomalies", 22, ["country"]),
        (3, "drift", 110, ["amount", "age"]),
        (4, "fine", 3, []),
    ]
]


def content(
    scores: Any,
    rows: pd.DataFrame,
    normal: pd.DataFrame | None = None,
    *,
    k: int = 1,
    ids: Sequence[Any] | None = None,
    p_values: Any = None,
    reasons: Sequence[Sequence[Any]] = (),
    truth: Any = None,
    n_kept: int | None = None,
    **others: Any,
) -> PageContent:
    """Content made of rows in any order, of which the first k are flagged; reasons are by rank."""
    scores = np.asarray(scores, dtype=float)
    order = np.argsort(-scores, kind="stable")
    kept = order[:n_kept]
    results = pd.DataFrame({"rank": np.arange(1, len(kept) + 1)})
    results["row" if ids is None else "id"] = kept if ids is None else np.asarray(ids)[kept]
    results["score"], results["flagged"], results["reasons"] = (
        scores[kept],
        results["rank"] <= k,
        "",
    )
    if p_values is not None:
        results["p_value"] = np.asarray(p_values)[kept]
    ranked, normal = rows.iloc[kept].reset_index(drop=True), rows if normal is None else normal
    given: dict[str, Any] = {
        "title": "t",
        "results": results,
        "rows": ranked,
        "scores": scores[order],
        "reasons": [*reasons, *[None] * (len(kept) - len(reasons))],
        "cells": {cells.name: cells for cells in frame_cells(ranked) or []},
        "normal": {cells.name: cells for cells in frame_cells(normal) or []},
        "n_normal": len(normal),
        "flagged_by": f"the top {k}",
        "truth": None if truth is None else np.asarray(truth, dtype=bool)[order],
    }
    return PageContent(**(given | others))


def table(n_rows: int, rng: np.random.Generator, shift: Any = 0.0) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "amount": np.round(rng.lognormal(3 + shift, 0.6, n_rows), 2),
            "age": rng.integers(18, 90, n_rows),
            "country": rng.choice(
                ["DE", "FR", "IT", "ES", "PL"], n_rows, p=[0.4, 0.3, 0.2, 0.07, 0.03]
            ),
            "member": rng.random(n_rows) < 0.7,
            "opened": pd.Timestamp("2023-01-01")
            + pd.to_timedelta(rng.integers(0, 900, n_rows), "D"),
            "ratio": rng.normal(0.5, 0.1, n_rows) + np.asarray(shift) / 10,
        }
    )


def why(row: Any, score: float) -> list[RowReason]:
    """Reasons of a row of `table`."""
    reasons = []
    if row["country"] == "KP":
        text = "country KP; never seen in 5,000 normal rows"
        reasons.append(RowReason(("country",), text, 9.0))
    if row["amount"] > 60:
        text = f"amount {row['amount']:.2f}; 97 % of normal rows are at most 60"
        reasons.append(RowReason(("amount",), text, 4.0 * score))
    if np.isnan(row["ratio"]):
        text = "ratio is missing; 0 of 5,000 normal rows lack it"
        reasons.append(RowReason(("ratio",), text, 3.0))
    if row["age"] > 70 and not row["member"]:
        text = f"age {row['age']} with member False; 2 % of normal rows have both"
        reasons.append(RowReason(("age", "member"), text, 1.0))
    return sorted(reasons, key=lambda reason: -reason.strength)


def plausible(n_rows: int = 1000, n_reasons: int | None = None, **others: Any) -> PageContent:
    """A run whose outliers have large amounts, with reasons and labels."""
    rng = np.random.default_rng(0)
    is_outlier = rng.random(n_rows) < 0.05
    rows = table(n_rows, rng, shift=1.5 * is_outlier)
    rows.loc[rng.random(n_rows) < 0.02, "ratio"] = np.nan
    rows.loc[is_outlier & (rng.random(n_rows) < 0.5), "country"] = "KP"
    scores = np.maximum(0, rng.normal(0.1, 0.3, n_rows) + is_outlier * rng.gamma(3, 0.4, n_rows))
    order = np.argsort(-scores, kind="stable")
    ranked = rows.iloc[order].reset_index(drop=True)
    reasons = [why(ranked.iloc[rank], scores[order[rank]]) for rank in range(n_reasons or n_rows)]
    odd = np.flatnonzero(ranked["country"][:40] == "KP")
    large_amounts = np.setdiff1d(np.flatnonzero(ranked["amount"][:40] > 60), odd)
    settings: dict[str, Any] = {
        "title": "Payments of March",
        "k": min(40, n_rows),
        "ids": [f"P-{number:06d}" for number in range(n_rows)],
        "reasons": reasons,
        "columns": [
            {"column": "amount", "kind": "number", "note": ""},
            {"column": "country", "kind": "category", "note": "6 levels, one of them unseen"},
            {"column": "opened", "kind": "date", "note": "turned into year, month and weekday"},
        ],
        "findings": [
            Finding("country = KP, never seen in 5,000 rows", odd, ("country",), 0.0, None),
            Finding("amount above 60", large_amounts, ("amount",), 0.031, 0.0004),
        ],
        "truth": is_outlier,
        "facts": {"preset": "recommended", "alpha": "0.5", "seed": "0", "qms22": "0.1.0"},
    }
    return content(scores, rows, table(5000, rng), **(settings | others))


def by_rate() -> PageContent:
    """A run that has flagged rows by their p-values: thirty of 200."""
    ruler = Ruler.of(np.linspace(0, 4.4, 400))
    scores = np.linspace(5, 0, 200)
    return content(
        scores,
        pd.DataFrame({"a": np.arange(200.0)}),
        k=30,
        p_values=Comparison.of(ruler, scores).p_values,
        truth=np.arange(200) < 20,
        flagged_by="a false discovery rate of 0.1",
        is_rate=True,
        curve=bound_false(Comparison.of(ruler, scores).counts),
    )


def hostile() -> PageContent:
    """A run in which every text tries to be something else."""
    texts = [
        HOSTILE,
        FORMULA,
        "+49 30 123",
        "-2+3",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        TURNED,
        'say "hi", ok',
    ]
    values = [-1.5, 2.0, -3.0, 4.0, 5.0, 6.0, 7.0, 8.0, np.nan]
    rows = pd.DataFrame(
        {HOSTILE: texts, FORMULA: values, "plain": ["-12.5"] * 9, TURNED: [*"abcdefgh", None]}
    )
    return content(
        np.arange(9, 0, -1),
        rows,
        title=HOSTILE,
        k=9,
        ids=texts,
        reasons=[
            [
                RowReason((HOSTILE, FORMULA), HOSTILE, 3.0),
                RowReason((TURNED,), TURNED, 1.0),
                RowReason(("__proto__",), "__proto__", np.inf),
            ]
        ],
        findings=[Finding(HOSTILE, np.arange(2), (HOSTILE,), 0.0, 0.5)],
        notes=[HOSTILE, TURNED],
        verdict=replace(
            VERDICT,
            moved=(
                MovedColumn(HOSTILE, TURNED, 0.5, 0.0, 1.0),
                MovedColumn(TURNED, "", 0.5, 0.0, 1.0),
            ),
        ),
        history=[searched(HOSTILE, TURNED, HOSTILE, 9, [HOSTILE], n_rows=9)],
        marked=pd.DataFrame({"id": [HOSTILE], "mark": ["anomaly"], TURNED: [FORMULA]}),
        columns=[{"column": HOSTILE, "kind": TURNED, "note": HOSTILE}],
        truth=[True, *[False] * 8],
        facts={HOSTILE: HOSTILE, "lone half": "\ud800", "turned": TURNED},
    )


def large(n_rows: int = 100_000, n_columns: int = 20) -> PageContent:
    """A run of numbers that do not pack, and a few columns of text."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(n_rows, n_columns - 3)))
    rows.columns = [f"feature {number}" for number in range(n_columns - 3)]
    rows["kind"] = rng.choice([*"abcdef"], n_rows)
    rows["count"] = rng.poisson(20, n_rows)
    rows["comment"] = [f"remark {number}" for number in rng.integers(0, 10**6, n_rows)]
    scores = np.maximum(0.0, rng.normal(size=n_rows))
    truth = rng.random(n_rows) < 0.01
    return content(
        scores, rows, rows.iloc[: n_rows // 2], title="A large batch", k=100, truth=truth
    )
