"""Detection runs to make pages of: a plausible one, a hostile one, a large one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from qms22.report import DetectionRun, ranking

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
FORMULA = "=cmd|' /C calc'!A0"
TURNED = "invoice\u202egpj.exe"


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


def plausible(n_rows: int = 1000, n_reasons: int = 50, **others: Any) -> DetectionRun:
    """A run whose outliers have large amounts, with reasons for the top rows and labels."""
    rng = np.random.default_rng(0)
    is_outlier = rng.random(n_rows) < 0.05
    rows = table(n_rows, rng, shift=1.5 * is_outlier)
    rows.loc[rng.random(n_rows) < 0.02, "ratio"] = np.nan
    rows.loc[is_outlier & (rng.random(n_rows) < 0.5), "country"] = "KP"
    scores = np.maximum(0, rng.normal(0.1, 0.3, n_rows) + is_outlier * rng.gamma(3, 0.4, n_rows))
    reasons = [
        [
            ("amount", scores[row] * 0.6, rows["amount"].iloc[row], 20.1),
            ("country", scores[row] * 0.25, rows["country"].iloc[row], "DE"),
            ("opened (month)", scores[row] * 0.1, rows["opened"].iloc[row].month, 6.0),
            ("age", -scores[row] * 0.05, rows["age"].iloc[row], 41),
        ]
        for row in ranking(scores)[:n_reasons]
    ]
    settings: dict[str, Any] = {
        "title": "Payments of March",
        "scores": scores,
        "rows": rows,
        "normal": table(5000, rng),
        "k": min(40, n_rows),
        "ids": [f"P-{number:06d}" for number in range(n_rows)],
        "reasons": reasons,
        "columns": [
            {"name": "amount", "kind": "numeric", "note": ""},
            {"name": "country", "kind": "categorical", "note": "6 levels, one of them unseen"},
            {"name": "opened", "kind": "date", "note": "turned into year, month and weekday"},
        ],
        "is_outlier": is_outlier,
        "facts": {"preset": "recommended", "alpha": "0.5", "seed": "0", "qms22": "0.1.0"},
    }
    return DetectionRun(**(settings | others))


def hostile() -> DetectionRun:
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
    return DetectionRun(
        title=HOSTILE,
        scores=np.arange(9, 0, -1),
        rows=rows,
        normal=rows,
        k=9,
        ids=texts,
        reasons=[[(HOSTILE, 3.0, HOSTILE, FORMULA), (TURNED, 1.0, TURNED, '"')]],
        columns=[{"name": HOSTILE, "kind": TURNED, "note": HOSTILE}],
        is_outlier=[True, *[False] * 8],
        facts={HOSTILE: HOSTILE, "lone half": "\ud800", "turned": TURNED},
    )


def large(n_rows: int = 100_000, n_columns: int = 20) -> DetectionRun:
    """A run of numbers that do not pack, and a few columns of text."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(n_rows, n_columns - 3)))
    rows.columns = [f"feature {number}" for number in range(n_columns - 3)]
    rows["kind"] = rng.choice([*"abcdef"], n_rows)
    rows["count"] = rng.poisson(20, n_rows)
    rows["comment"] = [f"remark {number}" for number in rng.integers(0, 10**6, n_rows)]
    scores = np.maximum(0.0, rng.normal(size=n_rows))
    return DetectionRun(
        title="A large batch",
        scores=scores,
        rows=rows,
        normal=rows.iloc[: n_rows // 2],
        k=100,
        is_outlier=rng.random(n_rows) < 0.01,
    )
