"""On the paper's own data: the kernel is exact, and the paper's figures come out."""

from __future__ import annotations

import numpy as np
import pytest
from keel_files import real_keel
from tasks import assert_same_members, by_reference

from qms22 import QMS22
from qms22._cpm.backends import solve
from qms22._cpm.scaling import FeatureScaler
from qms22._cpm.solver_options import SolverOptions
from qms22._cpm.task import detection_task
from qms22.metrics import roc
from qms22_bench.datasets import load_keel, paper_table1

# Small, large, wide, categorical and degenerate ones.
EXACT_ON = [
    "abalone9-18",
    "car-good",
    "cleveland-0_vs_4",
    "ecoli1",
    "flare-F",
    "glass2",
    "haberman",
    "iris0",
    "led7digit-0-2-4-5-6-7-8-9_vs_1",
    "shuttle-c2_vs_c4",
    "winequality-red-4",
    "zoo-3",
]


@pytest.mark.parametrize("name", EXACT_ON)
def test_exact(name: str) -> None:
    fold = next(load_keel(name, real_keel()).folds())
    scaler = FeatureScaler.learn(fold.normal, "maxabs")
    rows = scaler.transform(np.concatenate([fold.unlabeled, fold.normal]))
    task = detection_task(rows, len(fold.unlabeled), 7, np.random.RandomState(0))
    # As many sweeps as the reference makes in a moment.
    options = SolverOptions(max_iter=1 if rows.size > 5_000 else 3, n_components=5)
    assert_same_members(solve(task, options), by_reference(task, options))


@pytest.mark.slow
def test_reproduces_the_paper() -> None:
    names = [
        "abalone-3_vs_11",
        "dermatology-6",
        "ecoli-0-1-4-7_vs_5-6",
        "ecoli3",
        "glass6",
        "haberman",
        "new-thyroid1",
        "pima",
        "vehicle2",
        "wisconsin",
        "yeast-2_vs_4",
        "yeast5",
    ]
    found = []
    for name in names:
        aucs = []
        for fold in load_keel(name, real_keel()).folds():
            detector = QMS22(random_state=0).fit(fold.normal, unlabeled=fold.unlabeled)
            aucs.append(roc(fold.is_outlier, detector.unlabeled_scores_).auc)
        found.append(np.mean(aucs))
    expected = [paper_table1()[name].auc for name in names]
    assert np.mean(found) == pytest.approx(np.mean(expected), abs=0.02)
    assert np.abs(np.subtract(found, expected)).max() < 0.06
