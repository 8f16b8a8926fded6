"""Benchmark results made by hand, or drawn to look like a real run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from qms22_bench.datasets import paper_table1

Key = tuple[str, int, str, int]

RUNS = [
    {
        "run": 1,
        "started": "2025-01-01T00:00:00+00:00",
        "command": "qms22-bench run",
        "machine": {"processor": "an abacus", "cores": 2},
        "versions": {"qms22": "0.1.0", "numpy": "2.0"},
    }
]


def row(dataset: str, fold: int, detector: str, seed: int, auc: float | None, **others: Any) -> Any:
    return {
        "dataset": dataset,
        "fold": fold,
        "detector": detector,
        "seed": seed,
        "status": "ok",
        "error": None,
        "auc": auc,
        "fit_seconds": 0.1,
        "score_seconds": 0.02,
        "peak_megabytes": np.nan,
        "n_normal": 60,
        "n_unlabeled": 20,
        "n_outliers": 5,
        "n_features": 4,
        "folds": "official",
        "n_folds": 5,
        "parameters": '{"alpha": 0.5}',
        **others,
    }


def failed(dataset: str, fold: int, detector: str, seed: int, error: str) -> Any:
    measured = ("fit_seconds", "score_seconds", "peak_megabytes")
    missing = {"status": "error", "error": error, **dict.fromkeys(measured)}
    return row(dataset, fold, detector, seed, None, **missing)


def five_folds(dataset: str, detector: str, aucs: Sequence[float], seed: int = 0) -> list[Any]:
    return [row(dataset, fold, detector, seed, auc) for fold, auc in enumerate(aucs, start=1)]


def table(*groups: Sequence[Any]) -> pd.DataFrame:
    return pd.DataFrame([entry for group in groups for entry in group])


def flat(dataset: str, detector: str, auc: float, seed: int = 0) -> list[Any]:
    return five_folds(dataset, detector, [auc] * 5, seed)


def realistic(
    detectors: Sequence[str] = ("QMS22", "BRM", "OCKRA", "IsolationForest", "OneClassSVM"),
    seeds: Sequence[int] = (0, 1, 2),
    n_sets: int = 95,
) -> pd.DataFrame:
    """Draw results near the paper's on its data sets."""
    rng = np.random.default_rng(0)
    powers = (1.0, 1.9, 0.6, 0.3, 1.5)
    rows = []
    for name, paper in list(paper_table1().items())[:n_sets]:
        for place, detector in enumerate(detectors):
            level = paper.auc + rng.normal(-0.02 * place, 0.05)
            for seed in seeds:
                for fold in range(1, 6):
                    auc = float(np.clip(level + rng.normal(0, 0.02), 0, 1))
                    seconds = 1e-6 * (paper.n * paper.p) ** powers[place % 5]
                    rows.append(
                        row(
                            name,
                            fold,
                            detector,
                            seed,
                            auc,
                            fit_seconds=seconds * rng.lognormal(0, 0.2) + 1e-4,
                            n_normal=int(paper.n * 0.7),
                            n_unlabeled=paper.n // 5,
                            n_features=paper.p,
                            peak_megabytes=float(rng.uniform(1, 30)),
                        )
                    )
    return pd.DataFrame(rows)


def realistic_scores(results: pd.DataFrame) -> dict[Key, tuple[Any, Any]]:
    """Draw scores of every fit, outliers a little higher."""
    rng = np.random.default_rng(1)
    scores = {}
    for entry in results.itertuples():
        truth = np.arange(entry.n_unlabeled) < max(2, entry.n_unlabeled // 8)
        key = (entry.dataset, entry.fold, entry.detector, entry.seed)
        scores[key] = (truth, rng.normal(size=len(truth)) + 1.5 * truth)
    return scores
